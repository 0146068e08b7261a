internal import Glibc

/// Looks at how a ClientHello begins before OpenSSL does.
///
/// OpenSSL makes room for a whole handshake message once it has read how long the message says it is, and takes a
/// ClientHello of up to 131,396 bytes: nine bytes of a stranger would pin as many for as long as a handshake may take. So
/// one that says it is longer than `longest` never gets there, nor does anything that could stand in front of it. That
/// goes for the second one too, with which a client answers a HelloRetryRequest (RFC 8446 section 4.1.2). What follows
/// is bounded by OpenSSL itself, certificates by `ServerTLS.longestCertificates`.
struct ClientHelloGuard {
  /// Real ones have 200 to 2,000 bytes, with keys for post-quantum groups as well.
  static let longest = 16 << 10

  /// Where the greeting stands.
  enum Stage {
    /// The client has said nothing yet.
    case first
    /// It has been asked to say its hello differently.
    case second
    /// A hello has begun well, and OpenSSL has not answered it.
    case underWay
    case answered
  }

  enum Verdict: Equatable {
    case incomplete
    case sound
    case fault(String)
  }

  var stage = Stage.first
  /// What has come of a beginning that is not whole, at most 14 bytes.
  var held: [UInt8] = []

  /// Whether `bytes`, all that has come, begin a ClientHello.
  ///
  /// Its first record has to hold the header of the message, four bytes (section 4). OpenSSL would take one that comes in
  /// smaller pieces, which is allowed (section 5.1) and which no client does.
  func judge(_ bytes: UnsafeRawBufferPointer) -> Verdict {
    var record = bytes
    if stage == .second, bytes.first == 20 {
      // For the sake of middleboxes, once (appendix D.4).
      let changeCipherSpec: [UInt8?] = [20, 3, nil, 0, 1, 1]
      for (byte, wanted) in zip(bytes, changeCipherSpec) where wanted != nil && byte != wanted {
        return .fault("a malformed change_cipher_spec")
      }
      record = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(changeCipherSpec.count))
    }
    guard let type = record.first else { return .incomplete }
    guard type == 22 else {
      return .fault(
        (0x41...0x5A).contains(type)
          ? "no TLS, but probably plain HTTP: it begins with the letter \(Unicode.Scalar(type))"
          : "no TLS handshake record, but one that begins with \(type)")
    }
    guard record.count >= 5 else { return .incomplete }
    guard Int(record[3]) << 8 | Int(record[4]) >= 4 else {
      return .fault("a ClientHello in pieces of less than 4 bytes")
    }
    guard record.count >= 6 else { return .incomplete }
    guard record[5] == 1 else { return .fault("no ClientHello, but a handshake message of type \(record[5])") }
    guard record.count >= 9 else { return .incomplete }
    let length = Int(record[6]) << 16 | Int(record[7]) << 8 | Int(record[8])
    return length <= Self.longest ? .sound : .fault("a ClientHello of \(length) bytes")
  }

  /// Whether `flight`, what a server has to say to a ClientHello, asks for another one (section 4.1.3).
  static func isRetryRequest(_ flight: UnsafeRawBufferPointer) -> Bool {
    flight.count >= 43 && flight[0] == 22 && flight[5] == 2 && flight[11..<43].elementsEqual(retryRandom)
  }

  /// SHA-256 of "HelloRetryRequest".
  private static let retryRandom: [UInt8] = [
    0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8, 0x91,
    0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8, 0x33, 0x9C,
  ]
}

extension Link {
  /// `receive`, for a server's handshake.
  mutating func receive(
    greetedBy hello: inout ClientHelloGuard, into plain: UnsafeMutableRawPointer,
    through window: UnsafeMutablePointer<TLSWindow>
  ) -> Reception {
    guard let tls, hello.stage != .answered else { return receive(into: plain, through: window) }
    let held = hello.held.count
    guard let got = fetch(into: window.pointee.incoming + held, TLSWindow.incomingCapacity - held) else {
      return Reception(count: 0, ended: hasEnded)
    }
    for (offset, byte) in hello.held.enumerated() {
      window.pointee.incoming.storeBytes(of: byte, toByteOffset: offset, as: UInt8.self)
    }
    hello.held = []
    window.pointee.incomingStart = 0
    window.pointee.incomingEnd = held + got
    while hello.stage != .answered {
      if hello.stage != .underWay {
        let bytes = window.pointee.unread
        switch hello.judge(bytes) {
        case .incomplete:
          hello.held = Array(bytes)
          return Reception()
        case .fault(let rule):
          failure = "TLS handshake: \(rule)"
          hasEnded = true
          return Reception(count: 0, ended: true)
        case .sound:
          hello.stage = .underWay
        }
      }
      // What is behind a hello is shown to OpenSSL only once it is known whether that is another one.
      window.pointee.haltsBehindAnswer = true
      let reception = decrypt(tls, into: plain, through: window)
      window.pointee.haltsBehindAnswer = false
      let answer = UnsafeRawBufferPointer(start: window.pointee.outgoing, count: window.pointee.outgoingCount)
      if !answer.isEmpty { hello.stage = ClientHelloGuard.isRetryRequest(answer) ? .second : .answered }
      flush(window)
      // Behind an end OpenSSL reads nothing more, however often it is asked.
      if reception.ended || window.pointee.unread.isEmpty { return reception }
    }
    let reception = decrypt(tls, into: plain, through: window)
    flush(window)
    return reception
  }
}
