from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path
from helpdesk.views import tickets

urlpatterns = [
    path("", include("acp_django.urls")),
    path("", tickets, name="tickets"),
    path("login/", LoginView.as_view(template_name="helpdesk/login.html"), name="login"),
    path("logout/", LogoutView.as_view(next_page="login"), name="logout"),
]
