internal import AsyncHTTPClient
internal import ByteCoding
internal import ConnectionFaults
internal import Foundation
public import MFADomain
internal import NIOCore
internal import NIOHTTP1

/// Sends SMS through an HTTP interface like Twilio's: `POST {base}/2010-04-01/Accounts/{account}/Messages.json` with
/// the form fields `To`, `From` and `Body` and basic authentication.
public struct TwilioProvider: MessageProvider {
  private let url: String
  private let account: String
  private let authorization: String
  private let sender: String
  private let domain: String

  /// Creates the provider.
  ///
  /// - Parameters:
  ///   - base: `https://api.twilio.com`, or a server with the same API.
  ///   - sender: the phone number that messages come from.
  ///   - domain: the domain for autofill of codes.
  public init(base: String, account: String, token: String, sender: String, domain: String) {
    url = "\(base)/2010-04-01/Accounts/\(account)/Messages.json"
    self.account = "\(base)/2010-04-01/Accounts/\(account).json"
    authorization = "Basic " + Base64.encode(Array("\(account):\(token)".utf8))
    self.sender = sender
    self.domain = domain
  }

  public func deliver(_ message: OutgoingMessage) async throws(DeliveryFailure) {
    guard case .phone(let number) = message.destination else {
      throw DeliveryFailure(reason: "no phone number", isTemporary: false)
    }
    var request = HTTPClientRequest(url: url)
    request.method = .POST
    request.headers.add(name: "Authorization", value: authorization)
    request.headers.add(name: "Content-Type", value: "application/x-www-form-urlencoded")
    let form = Self.form([
      ("To", number.text), ("From", sender), ("Body", MessageText(message: message, domain: domain).body),
    ])
    request.body = .bytes(ByteBuffer(string: form))
    let status: HTTPResponseStatus
    do {
      let response = try await HTTPClient.shared.execute(request, timeout: .seconds(10))
      // Reading the whole body lets the client reuse the connection.
      _ = try? await response.body.collect(upTo: 1 << 16)
      status = response.status
    } catch {
      let ends: [HTTPClientError] = [.deadlineExceeded, .readTimeout, .remoteConnectionClosed]
      let isDoubtful = (error as? HTTPClientError).map(ends.contains) ?? false
      throw DeliveryFailure(reason: ConnectionFault.reason(of: error), isTemporary: true, isDoubtful: isDoubtful)
    }
    guard (200..<300).contains(status.code) else {
      throw DeliveryFailure(reason: "status \(status.code)", isTemporary: status.code == 429 || status.code >= 500)
    }
  }

  /// Asks for the account, which shows whether the server answers and accepts the token. Sends no message.
  ///
  /// - Throws: `DeliveryFailure` if the server cannot be reached or refuses the token. A server that has only the
  ///   messages of the API answers 404 or 405, which counts as reachable.
  public func probe() async throws(DeliveryFailure) {
    var request = HTTPClientRequest(url: account)
    request.headers.add(name: "Authorization", value: authorization)
    let status: UInt
    do {
      var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
      configuration.connectionPool.retryConnectionEstablishment = false
      let message = request
      status = try await HTTPClient.withHTTPClient(configuration: configuration) { client in
        try await client.execute(message, timeout: .seconds(10)).status.code
      }
    } catch {
      throw DeliveryFailure(reason: ConnectionFault.reason(of: error), isTemporary: true)
    }
    guard status != 401, status != 403 else {
      throw DeliveryFailure(reason: "the account and its token are refused (\(status))", isTemporary: false)
    }
    guard status < 500 else { throw DeliveryFailure(reason: "status \(status)", isTemporary: true) }
  }

  private static func form(_ fields: [(String, String)]) -> String {
    fields.map { name, value in
      // Percent-encoding fails only for invalid text.
      "\(name)=\(value.addingPercentEncoding(withAllowedCharacters: unreserved) ?? "")"
    }.joined(separator: "&")
  }

  private static let unreserved = CharacterSet(
    charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
}
