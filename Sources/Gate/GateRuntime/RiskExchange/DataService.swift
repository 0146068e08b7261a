public import AppAttest
internal import AttestGate
public import ByteCoding

/// Apple's service that exchanges receipts.
public enum DataService {
  /// The path of the exchange.
  public static let path = "/v1/attestationData"
  /// The largest answer that is read, in bytes. A receipt has about 4 KB, and a third more in base64.
  public static let longestAnswer = 64 << 10

  /// The host for keys of `environment`.
  public static func host(for environment: AttestEnvironment) -> String {
    switch environment {
    case .production: "data.appattest.apple.com"
    case .development: "data-development.appattest.apple.com"
    }
  }
}

/// A request to exchange one receipt: `POST /v1/attestationData`.
public struct ExchangeRequest: Sendable, Hashable {
  public let app: AppID
  public let environment: AttestEnvironment
  /// The value of `Authorization`.
  public let authorization: String
  /// The receipt in base64, and nothing else.
  public let body: [UInt8]

  init(_ due: DueReceipt, authorization: String) {
    (app, environment) = (due.key.appID, due.key.environment)
    self.authorization = authorization
    body = Array(Base64.encode(due.receipt).utf8)
  }
}

/// What the data service answered.
public struct ExchangeAnswer: Sendable, Hashable {
  public let status: Int
  public let body: [UInt8]
  /// The wait that `Retry-After` asks for.
  public let retryAfter: Duration?
  /// The time of the service's clock, from `Date`.
  public let date: Timestamp?

  public init(status: Int, body: [UInt8] = [], retryAfter: Duration? = nil, date: Timestamp? = nil) {
    (self.status, self.body, self.retryAfter, self.date) = (status, body, retryAfter, date)
  }
}

/// Sends requests to the data service. One deadline covers the whole exchange, and redirects are not followed.
public protocol ExchangeTransport: Sendable {
  func send(_ request: ExchangeRequest) async throws(ExchangeTransportError) -> ExchangeAnswer
}

/// Why there is no answer.
public enum ExchangeTransportError: Error, Sendable, Hashable {
  /// The service was not reached, was not trusted, or did not answer in time.
  case noAnswer(reason: String)
  /// The answer is longer than `DataService.longestAnswer`.
  case answerTooLong
  /// The answer is not HTTP.
  case malformedAnswer(reason: String)
}
