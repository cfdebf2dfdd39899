from django.contrib.auth.decorators import login_not_required
from django.http import HttpResponse
from django.urls import include, path
from tickets.meeting import TOGETHER


@login_not_required
def plain(request):
    return HttpResponse("a plain view")


@login_not_required
def meet(request):
    TOGETHER.wait()
    return HttpResponse("met")


urlpatterns = [
    path("", include("acp_django.urls")),
    path("plain/", plain),
    path("meet/", meet),
]
