internal import Foundation
internal import Wire

/// Requests whose answers are JSON documents of at most 256 KiB.
struct DocumentExchange: Sendable {
  let transport: any HTTPTransport

  /// Fetches a document.
  func document(at url: URL, called name: String) async throws(OIDCError) -> [UInt8] {
    let answer = try await send(HTTPRequest(url: url, headers: Self.fields), called: name)
    guard answer.status == 200 else { throw .status(answer.status, of: name, retryAfter: answer.retryAfter) }
    return answer.body
  }

  /// Sends a request. An answer with any status but a redirect is returned.
  func send(_ request: HTTPRequest, called name: String) async throws(OIDCError) -> HTTPResponse {
    let answer: HTTPResponse
    do { answer = try await transport.send(request) } catch { throw .transport(error) }
    guard !(300..<400).contains(answer.status) else { throw .redirected(name) }
    guard answer.body.count <= ProviderMetadata.largest else { throw .tooLarge(name) }
    return answer
  }

  /// The fields of every request. No answer is to be kept by a proxy.
  static let fields = [
    HTTPField("Accept", "application/json"), HTTPField("Cache-Control", "no-store"),
    HTTPField("User-Agent", "sallyport"),
  ]
}
