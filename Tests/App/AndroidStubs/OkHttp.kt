@file:Suppress("UNUSED_PARAMETER")

package okhttp3

import java.io.Closeable
import okio.ByteString

class HttpUrl private constructor() {
  fun resolve(link: String): HttpUrl? = TODO("a declaration")

  companion object {
    @JvmStatic fun String.toHttpUrl(): HttpUrl = TODO("a declaration")
  }
}

class MediaType private constructor() {
  companion object {
    @JvmStatic fun String.toMediaType(): MediaType = TODO("a declaration")
  }
}

abstract class RequestBody {
  companion object {
    @JvmStatic @JvmOverloads
    fun ByteArray.toRequestBody(
      contentType: MediaType? = null, offset: Int = 0, byteCount: Int = size
    ): RequestBody = TODO("a declaration")
  }
}

abstract class ResponseBody : Closeable {
  fun string(): String = TODO("a declaration")
}

class Request private constructor() {
  fun newBuilder(): Builder = TODO("a declaration")

  open class Builder {
    open fun url(url: HttpUrl): Builder = this
    open fun url(url: String): Builder = this
    open fun header(name: String, value: String): Builder = this
    open fun post(body: RequestBody): Builder = this
    open fun build(): Request = TODO("a declaration")
  }
}

class Response private constructor() : Closeable {
  val code: Int = 0
  val body: ResponseBody? = null
  @JvmOverloads fun header(name: String, defaultValue: String? = null): String? = defaultValue
  override fun close() {}
}

interface Call {
  fun execute(): Response
}

open class OkHttpClient {
  open fun newCall(request: Request): Call = TODO("a declaration")
  open fun newWebSocket(request: Request, listener: WebSocketListener): WebSocket = TODO("a declaration")
}

interface WebSocket

abstract class WebSocketListener {
  open fun onOpen(webSocket: WebSocket, response: Response) {}
  open fun onMessage(webSocket: WebSocket, text: String) {}
  open fun onMessage(webSocket: WebSocket, bytes: ByteString) {}
  open fun onClosing(webSocket: WebSocket, code: Int, reason: String) {}
  open fun onClosed(webSocket: WebSocket, code: Int, reason: String) {}
  open fun onFailure(webSocket: WebSocket, t: Throwable, response: Response?) {}
}
