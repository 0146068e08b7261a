internal import ConnectionFaults
internal import Foundation
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
    /// Whether to require STARTTLS (RFC 3207). If `true`, nothing is sent without TLS.
    public var usesTLS: Bool
    public var user: String?
    public var password: String?

    public init(
      host: String, port: Int, serverName: String? = nil, authority: String? = nil, usesTLS: Bool = true,
      user: String? = nil, password: String? = nil
    ) {
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

  /// Creates the provider.
  ///
  /// - Parameter domain: the domain for EHLO, message ids and the text of messages.
  public init(server: Server, sender: EmailAddress, domain: String) {
    self.server = server
    self.sender = sender
    self.domain = domain
  }

  public func deliver(_ message: OutgoingMessage) async throws(DeliveryFailure) {
    guard case .email(let recipient) = message.destination else {
      throw DeliveryFailure(reason: "no e-mail address", isTemporary: false)
    }
    let text = MessageText(message: message, domain: domain)
    let mail = SMTPMail(
      sender: sender, recipient: recipient, subject: text.subject, body: text.body, domain: domain)
    // A silent server must not block the queue.
    try await talk(within: .seconds(30)) { try await $0.hand(over: mail, to: server) }
  }

  /// Connects and signs in like a delivery, and sends no mail.
  ///
  /// - Throws: `DeliveryFailure` if the server would not accept a mail.
  public func probe() async throws(DeliveryFailure) {
    try await talk(within: .seconds(10)) { try await $0.greet(server, as: domain) }
  }

  private func talk(
    within limit: TimeAmount, _ body: (inout SMTPDialogue) async throws -> Void
  ) async throws(DeliveryFailure) {
    do {
      let channel = try await connect()
      let deadline = channel.channel.eventLoop.scheduleTask(in: limit) { [channel = channel.channel] in
        channel.close(promise: nil)
      }
      defer { deadline.cancel() }
      try await channel.executeThenClose { inbound, outbound in
        var dialogue = SMTPDialogue(channel: channel.channel, inbound: inbound, outbound: outbound)
        try await body(&dialogue)
      }
    } catch let failure as DeliveryFailure {
      throw failure
    } catch {
      throw DeliveryFailure(reason: ConnectionFault.reason(of: error), isTemporary: true)
    }
  }

  private func connect() async throws -> NIOAsyncChannel<ByteBuffer, ByteBuffer> {
    try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .connectTimeout(.seconds(10))
      .connect(host: server.host, port: server.port) { channel in
        channel.eventLoop.makeCompletedFuture { try NIOAsyncChannel(wrappingChannelSynchronously: channel) }
      }
  }
}

/// One mail, as `DATA` sends it.
struct SMTPMail {
  let sender: EmailAddress
  let recipient: EmailAddress
  let subject: String
  let body: String
  let domain: String

  /// Header and body with CRLF line ends, dot-stuffing (RFC 5321, section 4.5.2) and the final dot.
  func text(date: Date, id: String) -> String {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(identifier: "UTC")
    formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss '+0000'"
    let lines =
      [
        "From: <\(sender.text)>", "To: <\(recipient.text)>", "Subject: \(subject)",
        "Date: \(formatter.string(from: date))", "Message-ID: <\(id)@\(domain)>", "MIME-Version: 1.0",
        "Content-Type: text/plain; charset=utf-8", "Auto-Submitted: auto-generated", "",
      ] + body.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    return lines.map { ($0.hasPrefix(".") ? "." : "") + $0 + "\r\n" }.joined() + ".\r\n"
  }
}
