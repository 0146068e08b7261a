internal import ByteCoding
internal import ConnectionFaults
internal import Foundation
internal import MFADomain
internal import NIOCore
internal import NIOSSL

/// The SMTP dialogue that sends one mail.
struct SMTPDialogue {
  let channel: any Channel
  let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
  private var inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
  private var buffer: [UInt8] = []
  /// Whether the server has received the whole mail and not yet answered.
  private var isHandedOver = false

  /// The maximum length of a reply, far above that of any real reply.
  private static let longestReply = 1 << 14

  init(
    channel: any Channel, inbound: NIOAsyncChannelInboundStream<ByteBuffer>,
    outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
  ) {
    self.channel = channel
    self.outbound = outbound
    self.inbound = inbound.makeAsyncIterator()
  }

  mutating func hand(over mail: SMTPMail, to server: SMTPProvider.Server) async throws {
    do {
      try await speak(of: mail, to: server)
    } catch  where isHandedOver {
      throw DeliveryFailure(
        reason: "no reply after the complete mail: \(Self.reason(of: error))", isTemporary: true, isDoubtful: true)
    }
  }

  private static func reason(of error: any Error) -> String {
    (error as? DeliveryFailure)?.reason ?? ConnectionFault.reason(of: error)
  }

  /// Signs in at the server and sends nothing.
  mutating func greet(_ server: SMTPProvider.Server, as domain: String) async throws {
    try await open(server, as: domain)
    try? await say("QUIT", 221)
  }

  /// Begins the dialogue, up to the first mail.
  private mutating func open(_ server: SMTPProvider.Server, as domain: String) async throws {
    try await expect(220)
    try await say("EHLO \(domain)", 250)
    if server.usesTLS {
      try await say("STARTTLS", 220)
      try await startTLS(server)
      try await say("EHLO \(domain)", 250)
    }
    if let user = server.user, let password = server.password {
      // SASL PLAIN (RFC 4616) sends the password itself, so it needs TLS.
      guard server.usesTLS else { throw DeliveryFailure(reason: "password not sent without TLS", isTemporary: false) }
      try await say("AUTH PLAIN " + Base64.encode(Array("\0\(user)\0\(password)".utf8)), 235)
    }
  }

  private mutating func speak(of mail: SMTPMail, to server: SMTPProvider.Server) async throws {
    try await open(server, as: mail.domain)
    try await say("MAIL FROM:<\(mail.sender.text)>", 250)
    // 251: the user is not local, and the server forwards (RFC 5321, section 4.2.3).
    try await say("RCPT TO:<\(mail.recipient.text)>", 250, 251)
    try await say("DATA", 354)
    let id = UUID().uuidString.lowercased()
    try await outbound.write(ByteBuffer(string: mail.text(date: Date(), id: id)))
    isHandedOver = true
    try await expect(250)
    // The server is responsible for the mail now, so a failed QUIT does not matter.
    try? await say("QUIT", 221)
  }

  private mutating func startTLS(_ server: SMTPProvider.Server) async throws {
    // Plaintext bytes after the 220 reply may come from an attacker (RFC 3207, section 4.2).
    guard buffer.isEmpty else { throw DeliveryFailure(reason: "unexpected bytes after STARTTLS", isTemporary: false) }
    var configuration = TLSConfiguration.makeClientConfiguration()
    if let authority = server.authority { configuration.trustRoots = .file(authority) }
    let context = try NIOSSLContext(configuration: configuration)
    let name = server.serverName ?? server.host
    // SNI must not contain an IP address (RFC 6066, section 3). Without a name, the certificate must contain the
    // address of the connection.
    let sni = (try? SocketAddress(ipAddress: name, port: 0)) == nil ? name : nil
    let channel = channel
    try await channel.eventLoop.submit {
      let handler = try NIOSSLClientHandler(context: context, serverHostname: sni)
      try channel.pipeline.syncOperations.addHandler(handler, position: .first)
    }.get()
  }

  private mutating func say(_ line: String, _ expected: Int...) async throws {
    try await outbound.write(ByteBuffer(string: line + "\r\n"))
    try await expect(expected)
  }

  private mutating func expect(_ expected: Int) async throws { try await expect([expected]) }

  /// Reads one reply of one or more lines (RFC 5321, section 4.2.1).
  private mutating func expect(_ expected: [Int]) async throws {
    var total = 0
    while true {
      let line = try await line()
      total += line.utf8.count
      guard total <= Self.longestReply, line.utf8.count >= 3, let code = Int(line.prefix(3)) else {
        throw DeliveryFailure(reason: "malformed reply", isTemporary: false)
      }
      if line.dropFirst(3).first == "-" { continue }
      isHandedOver = false
      guard expected.contains(code) else {
        let wanted = expected.map(String.init).joined(separator: " or ")
        throw DeliveryFailure(reason: "reply \(code) instead of \(wanted)", isTemporary: code / 100 == 4)
      }
      return
    }
  }

  private mutating func line() async throws -> String {
    while true {
      if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
        let line = String(decoding: buffer[..<end], as: UTF8.self)
        buffer.removeSubrange(...end)
        return line.trimmingCharacters(in: .whitespacesAndNewlines)
      }
      guard buffer.count <= Self.longestReply, let bytes = try await inbound.next() else {
        throw DeliveryFailure(reason: "the server closed the connection, or its line is too long", isTemporary: true)
      }
      buffer += bytes.readableBytesView
    }
  }
}
