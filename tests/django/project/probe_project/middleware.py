from asgiref.sync import iscoroutinefunction
from django.utils.decorators import sync_and_async_middleware


@sync_and_async_middleware
def tenant(get_response):
    """Says for which tenant a request is, as many projects do."""
    if iscoroutinefunction(get_response):

        async def middleware(request):
            request.tenant = request.headers.get("X-Tenant", "nobody")
            response = await get_response(request)
            response["X-Tenant-Seen"] = request.tenant
            return response

        return middleware

    def middleware(request):
        request.tenant = request.headers.get("X-Tenant", "nobody")
        return get_response(request)

    return middleware
