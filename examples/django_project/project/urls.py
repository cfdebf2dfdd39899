from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path
from helpdesk.views import Tickets

urlpatterns = [
    path("", include("acp_django.urls")),
    path("", Tickets.as_view(), name="tickets"),
    path("login/", LoginView.as_view(template_name="helpdesk/login.html"), name="login"),
    path("logout/", LogoutView.as_view(next_page="login"), name="logout"),
]
