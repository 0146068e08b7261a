public import Wire
internal import Foundation
internal import HTTPClientTransport
public import MFADomain

/// Sends SMS by one HTTP request each, which follows a template. Redirects are not followed: the code and the token
/// would go to another server.
public struct HTTPTextProvider: ProbedProvider {
  private let template: HTTPTextTemplate
  private let origin: String
  private let sender: String
  private let token: (@Sendable () throws -> String)?
  private let expected: ClosedRange<Int>
  private let domain: String
  private let templates: MessageTemplates
  private let transport: HTTPClientTransport

  /// Creates the provider.
  ///
  /// - Parameters:
  ///   - origin: scheme, host and port of the server, with a final slash. A probe asks for it.
  ///   - sender: the value of `{{from}}`.
  ///   - token: returns the value of `{{token}}`. It is asked for each message, so that another program can renew it.
  ///   - expected: the status codes of an accepted message.
  ///   - authorityFile: a PEM file with the roots to trust instead of the system's roots.
  ///   - exchangeTime: the time for a message, from the connection to the last byte of the answer.
  ///   - proxies: choose the proxy for the server.
  public init(
    _ template: HTTPTextTemplate, origin: String, sender: String = "", token: (@Sendable () throws -> String)? = nil,
    expected: ClosedRange<Int> = 200...299, authorityFile: String? = nil, domain: String,
    templates: MessageTemplates = .builtIn, exchangeTime: Duration = .seconds(10),
    proxies: ProxyVariables = .ofProcess
  ) {
    self.template = template
    self.origin = origin
    self.sender = sender
    self.token = token
    self.expected = expected
    self.domain = domain
    self.templates = templates
    transport = HTTPClientTransport(
      .init(authorityFile: authorityFile, largestAnswer: 1 << 16, exchangeTime: exchangeTime, proxies: proxies))
  }

  public func deliver(_ message: OutgoingMessage) async throws(DeliveryFailure) {
    guard case .phone(let number) = message.destination else {
      throw DeliveryFailure(reason: "no phone number", isTemporary: false)
    }
    let text = MessageText(message: message, domain: domain, templates: templates).body
    let values = HTTPTextTemplate.Values(to: number.text, from: sender, text: text, token: try readToken())
    guard let request = template.request(values) else {
      throw DeliveryFailure(
        reason: "sms.http.token_file has characters that no header field can have", isTemporary: false)
    }
    let status: Int
    do throws(TransportError) {
      status = try await transport.send(request).status
    } catch .tooLarge {
      // The head came before, but is not known here.
      throw DeliveryFailure(reason: "the answer is too large", isTemporary: false, isDoubtful: true)
    } catch {
      // A message that is sent again may arrive twice, so a lost answer is in doubt.
      let isDoubtful =
        switch error {
        case .unreachable, .untrusted: false
        case .lost, .malformed, .tooLarge: true
        }
      throw DeliveryFailure(reason: "\(error)", isTemporary: true, isDoubtful: isDoubtful)
    }
    guard !expected.contains(status) else { return }
    throw DeliveryFailure(
      reason: "status \(status)", isTemporary: status == 408 || status == 429 || status >= 500)
  }

  private func readToken() throws(DeliveryFailure) -> String {
    guard let token else { return "" }
    do { return try token() } catch {
      throw DeliveryFailure(reason: "sms.http.token_file cannot be read", isTemporary: true)
    }
  }

  /// Asks for `/` of the server without credentials: any answer shows that it is reached and trusted. A request by the
  /// template would send a message.
  ///
  /// - Throws: `DeliveryFailure` if there is no answer.
  public func probe() async throws(DeliveryFailure) {
    guard let url = URL(string: origin) else {
      throw DeliveryFailure(reason: "the URL is not valid", isTemporary: false)
    }
    do throws(TransportError) {
      _ = try await transport.send(HTTPRequest(method: .get, url: url))
    } catch .tooLarge, .malformed {
      return
    } catch {
      throw DeliveryFailure(reason: "\(error)", isTemporary: true)
    }
  }
}
