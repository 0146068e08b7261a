internal import AsyncHTTPClient
internal import Foundation
internal import Glibc
internal import NIOCore
internal import NIOPosix
internal import NIOSSL

/// Errors of a connection as words for people. The libraries' own texts name their types and memory.
public enum ConnectionFault {
  /// The reason in a few words, such as `Connection refused`.
  public static func reason(of error: any Error) -> String {
    switch error {
    case let error as IOError: String(cString: strerror(error.errnoCode))
    case let error as NIOConnectionError: reason(of: error)
    case let error as SocketAddressError.UnknownHost: "the name \(error.host) has no address"
    case let error as SocketAddressError: reason(of: error)
    case is NIOTooManyBytesError: "the answer is too large"
    case let error as MalformedAnswer: "the server sent no HTTP: \(error.text)"
    case let error as NIOSSLError: reason(of: error)
    case let error as NIOSSLExtraError where error == .failedToValidateHostname: "the certificate is for another name"
    case is NIOSSLExtraError, is BoringSSLError: "the TLS handshake failed: \(text(of: error))"
    case let error as HTTPClientError: reason(of: error)
    case let error as ChannelError: reason(of: error)
    default: text(of: error)
    }
  }

  private static func reason(of error: NIOConnectionError) -> String {
    // The name server answers for each address family; one text is enough.
    guard let first = error.connectionErrors.last else { return "the name \(error.host) has no address" }
    return reason(of: first.error)
  }

  private static func reason(of error: SocketAddressError) -> String {
    switch error {
    case .unixDomainSocketPathTooLong: "the path of the socket is too long"
    default: "the address is not valid"
    }
  }

  private static func reason(of error: NIOSSLError) -> String {
    switch error {
    case .handshakeFailed(let cause): "the TLS handshake failed: \(text(of: cause))"
    case .unableToValidateCertificate: "the certificate is for another name"
    case .failedToLoadCertificate, .noSuchFilesystemObject: "the file with the roots cannot be read"
    case .uncleanShutdown: "the connection was closed in the middle"
    default: "TLS failed"
    }
  }

  private static func reason(of error: HTTPClientError) -> String {
    switch error {
    case .connectTimeout: "no connection within the time allowed"
    case .deadlineExceeded, .readTimeout: "no answer within the time allowed"
    case .tlsHandshakeTimeout: "no TLS handshake within the time allowed"
    case .remoteConnectionClosed, .uncleanShutdown: "the server closed the connection"
    case .invalidURL, .emptyHost, .emptyScheme, .missingSocketPath: "the URL is not valid"
    default: error.shortDescription
    }
  }

  private static func reason(of error: ChannelError) -> String {
    switch error {
    case .connectTimeout: "no connection within the time allowed"
    case .eof, .ioOnClosedChannel, .alreadyClosed, .inputClosed, .outputClosed: "the server closed the connection"
    default: "the connection failed"
    }
  }

  /// What BoringSSL's common errors mean. Another error keeps its text, on one line.
  private static func text(of error: any Error) -> String {
    let text = "\(error)"
    for (word, meaning) in [
      ("CERTIFICATE_VERIFY_FAILED", "the certificate was not issued by a trusted CA, or has expired"),
      ("WRONG_VERSION_NUMBER", "the server does not speak TLS"),
      ("EOF during handshake", "the server closed the connection"),
      ("TLSV1_ALERT", "the server refused the handshake"), ("SSLV3_ALERT", "the server refused the handshake"),
    ] where text.contains(word) {
      return meaning
    }
    return text.split(whereSeparator: \.isNewline).joined(separator: " ")
  }
}
