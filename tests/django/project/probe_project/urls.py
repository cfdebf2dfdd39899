from django.contrib.auth.decorators import login_not_required
from django.http import HttpResponse
from django.urls import include, path


@login_not_required
def plain(request):
    return HttpResponse("a plain view")


urlpatterns = [
    path("", include("acp_django.urls")),
    path("plain/", plain),
]
