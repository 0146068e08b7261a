internal import ByteCoding
internal import Foundation
internal import HTTPClientTransport
internal import Wire
internal import Locking
public import MFADomain
internal import NIOCore
internal import NIOPosix
internal import NIOSSL

/// Sends e-mail by SMTP (RFC 5321), with one connection per message.
public struct SMTPProvider: MessageProvider {
  /// The mail server.
  public struct Server: Sendable, Hashable {
    /// The host name or address. An IPv6 address has no brackets. An address must be in the certificate.
    public var host: String
    public var port: Int
    /// The name in the certificate, if it differs from `host`.
    public var serverName: String?
    /// A PEM file with the roots to trust instead of the system's roots.
    public var authority: String?
    /// Whether to require TLS. If `true`, nothing is sent without it.
    public var usesTLS: Bool
    /// Whether the connection begins with TLS (RFC 8314), instead of STARTTLS (RFC 3207).
    public var beginsWithTLS: Bool
    public var user: String?
    public var password: String?

    public init(
      host: String, port: Int, serverName: String? = nil, authority: String? = nil, usesTLS: Bool = true,
      beginsWithTLS: Bool = false, user: String? = nil, password: String? = nil
    ) {
      self.beginsWithTLS = beginsWithTLS
      self.host = host
      self.port = port
      self.serverName = serverName
      self.authority = authority
      self.usesTLS = usesTLS
      self.user = user
      self.password = password
    }
  }

  private let server: Server
  private let sender: EmailAddress
  private let domain: String
  private let templates: MessageTemplates
  private let deliveryTime: Duration
  private let token: (@Sendable () throws -> String)?
  /// The name that EHLO tells the server.
  public let greeting: String

  /// Creates the provider.
  ///
  /// - Parameters:
  ///   - domain: the domain for the text of messages.
  ///   - templates: the texts of messages.
  ///   - greeting: the name for EHLO and message ids; `nil` for the domain of `sender`. Some servers refuse `localhost`.
  ///   - token: returns the access token of the user, for XOAUTH2 instead of a password. It is asked for each connection.
  ///   - deliveryTime: the time for one mail, from the connection to the last reply, however slowly the server sends.
  public init(
    server: Server, sender: EmailAddress, domain: String, templates: MessageTemplates = .builtIn,
    greeting: String? = nil,
    token: (@Sendable () throws -> String)? = nil, deliveryTime: Duration = .seconds(30)
  ) {
    // EHLO is sent before anything tells that the server reads UTF-8.
    self.greeting = greeting ?? (sender.domain.utf8.allSatisfy { $0 < 0x80 } ? sender.domain : domain)
    self.token = token
    self.server = server
    self.sender = sender
    self.domain = domain
    self.templates = templates
    self.deliveryTime = deliveryTime
  }

  public func deliver(_ message: OutgoingMessage) async throws(DeliveryFailure) {
    guard case .email(let recipient) = message.destination else {
      throw DeliveryFailure(reason: "no e-mail address", isTemporary: false)
    }
    let text = MessageText(message: message, domain: domain, templates: templates)
    let mail = SMTPMail(
      sender: sender, recipient: recipient, subject: text.subject, body: text.body, domain: greeting)
    // A silent server must not block the queue.
    let access = SMTPAccess(server: server, greeting: greeting, token: token)
    try await talk(within: deliveryTime) { try await $0.hand(over: mail, by: access) }
  }

  /// Connects and signs in like a delivery, and sends no mail.
  ///
  /// - Throws: `DeliveryFailure` if the server would not accept a mail.
  public func probe() async throws(DeliveryFailure) {
    let access = SMTPAccess(server: server, greeting: greeting, token: token)
    try await talk(within: deliveryTime / 3) { try await $0.greet(by: access) }
  }

  private func talk(
    within limit: Duration, _ body: @escaping @Sendable (inout SMTPDialogue) async throws -> Void
  ) async throws(DeliveryFailure) {
    let progress = LockedValue(SMTPDialogue.Progress.open)
    do throws(TalkFailure) {
      try await ExchangeDeadline.within(limit, expired: TalkFailure.late, cancelled: .late) {
        () async throws(TalkFailure) in
        do {
          try await connected(progress, body)
        } catch let failure as DeliveryFailure {
          throw .failed(failure)
        } catch {
          throw .failed(DeliveryFailure(reason: ConnectionFault.reason(of: error), isTemporary: true))
        }
      }
    } catch .failed(let failure) {
      throw failure
    } catch {
      switch progress.withLock(\.self) {
      // Only the farewell is missing.
      case .accepted: return
      // A server that has the whole mail may deliver it.
      case .handedOver:
        throw DeliveryFailure(reason: "no reply after the complete mail in time", isTemporary: true, isDoubtful: true)
      case .open: throw DeliveryFailure(reason: "no answer within the time allowed", isTemporary: true)
      }
    }
  }

  private enum TalkFailure: Error {
    case late
    case failed(DeliveryFailure)
  }

  private func connected(
    _ progress: LockedValue<SMTPDialogue.Progress>, _ body: @Sendable (inout SMTPDialogue) async throws -> Void
  ) async throws {
    let connection = try await connect()
    try await connection.executeThenClose { inbound, outbound in
      let channel = connection.channel
      // Not every wait for a channel ends when its task is cancelled; all end when it closes.
      try await withTaskCancellationHandler {
        var dialogue = SMTPDialogue(channel: channel, inbound: inbound, outbound: outbound, progress: progress)
        try await body(&dialogue)
      } onCancel: {
        channel.close(promise: nil)
      }
    }
  }

  private func connect() async throws -> NIOAsyncChannel<ByteBuffer, ByteBuffer> {
    try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .connectTimeout(.seconds(10))
      .connect(host: server.host, port: server.port) { channel in
        channel.eventLoop.makeCompletedFuture { try SMTPDialogue.wrap(channel) }
      }
  }
}

/// What a dialogue begins with.
struct SMTPAccess: Sendable {
  let server: SMTPProvider.Server
  /// The name for EHLO.
  let greeting: String
  let token: (@Sendable () throws -> String)?
}

/// One mail, as `DATA` sends it.
struct SMTPMail {
  let sender: EmailAddress
  let recipient: EmailAddress
  let subject: String
  let body: String
  /// The domain of its id.
  let domain: String

  /// Whether one of its addresses needs a server with SMTPUTF8 (RFC 6531).
  var needsUTF8: Bool { sender.needsUTF8 || recipient.needsUTF8 }

  /// The longest line, in bytes without its end (RFC 5322, section 2.1.1).
  private static let longestLine = 998

  /// The lines in base64 (RFC 2045, section 6.8): a relay may not accept other bytes than ASCII.
  private static func encoded(_ lines: [String]) -> [String] {
    let text = Array(Base64.encode(Array((lines.joined(separator: "\r\n") + "\r\n").utf8)).utf8)
    return stride(from: 0, to: text.count, by: 76).map {
      String(decoding: text[$0..<min($0 + 76, text.count)], as: UTF8.self)
    }
  }

  /// Header and body with CRLF line ends, dot-stuffing (RFC 5321, section 4.5.2) and the final dot.
  func text(date: Date, id: String) -> String {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(identifier: "UTC")
    formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss '+0000'"
    var lines = body.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    let isPlain = lines.allSatisfy { $0.utf8.count <= Self.longestLine && $0.utf8.allSatisfy { $0 < 0x80 } }
    if !isPlain { lines = Self.encoded(lines) }
    lines =
      [
        "From: <\(sender.text)>", "To: <\(recipient.text)>", "Subject: \(EncodedWords.text(subject))",
        "Date: \(formatter.string(from: date))", "Message-ID: <\(id)@\(domain)>", "MIME-Version: 1.0",
        "Content-Type: text/plain; charset=utf-8",
      ] + (isPlain ? [] : ["Content-Transfer-Encoding: base64"]) + ["Auto-Submitted: auto-generated", ""] + lines
    return lines.map { ($0.hasPrefix(".") ? "." : "") + $0 + "\r\n" }.joined() + ".\r\n"
  }
}

/// The text of a header field, in which only ASCII may stand as it is (RFC 2047).
enum EncodedWords {
  /// `text` on one line; as encoded words, one per folded line, if it is not printable ASCII. The first one leaves room
  /// for the name of the field, of at most 14 bytes.
  static func text(_ text: String) -> String {
    guard text.utf8.contains(where: { !(0x20...0x7E).contains($0) }) else { return text }
    var words: [[UInt8]] = [[]]
    // A line with a word has at most 76 characters, and a word has whole characters, section 2 and section 5.
    for scalar in text.unicodeScalars {
      let bytes = Array(String(scalar).utf8)
      if words[words.count - 1].count + bytes.count > (words.count == 1 ? 36 : 45) { words.append([]) }
      words[words.count - 1] += bytes
    }
    return words.map { "=?utf-8?B?\(Base64.encode($0))?=" }.joined(separator: "\r\n ")
  }
}
