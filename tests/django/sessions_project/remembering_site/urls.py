from django.urls import include, path

urlpatterns = [path("", include("acp_django.urls"))]
