internal import Foundation
public import Wire

/// A transport that writes a line about each exchange, for debugging. No line contains a token, a code or a password.
public struct LoggedTransport: HTTPTransport {
  private let transport: any HTTPTransport
  private let write: @Sendable (String) -> Void

  /// Sends by `transport` and writes by `write`.
  public init(_ transport: any HTTPTransport, write: @escaping @Sendable (String) -> Void) {
    self.transport = transport
    self.write = write
  }

  public func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPResponse {
    do throws(TransportError) {
      let answer = try await transport.send(request)
      write("\(Self.line(request)) -> \(answer.status), \(answer.body.count) bytes")
      return answer
    } catch {
      write("\(Self.line(request)) -> \(error.description(of: "the provider"))")
      throw error
    }
  }

  /// The fields of a form whose values are shown.
  private static let shown: Set<String> = [
    "grant_type", "client_id", "scope", "redirect_uri", "token_type_hint", "client_assertion_type",
    "subject_token_type", "actor_token_type", "requested_token_type",
  ]

  /// The fields of a form whose names are shown. A body that is no form may be taken for a name.
  private static let named: Set<String> = shown.union([
    "code", "code_verifier", "refresh_token", "username", "password", "device_code", "token", "client_secret",
    "client_assertion", "subject_token", "actor_token",
  ])

  /// Method, URL without user and query, and the known fields of a form, most of them without their values.
  private static func line(_ request: HTTPRequest) -> String {
    var url = URLComponents(url: request.url, resolvingAgainstBaseURL: true)
    url?.user = nil
    url?.password = nil
    url?.query = nil
    url?.fragment = nil
    let body = request.body.isEmpty ? [:] : FormEncoding.decode(String(decoding: request.body, as: UTF8.self)) ?? [:]
    let fields = body.keys.filter(named.contains).sorted().map { name in
      "\(name)=\(shown.contains(name) ? body[name] ?? "" : "...")"
    }
    return ([request.method.rawValue, url?.string ?? "-"] + fields).joined(separator: " ")
  }
}
