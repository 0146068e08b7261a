internal import COpenSSL

/// The groups for the key exchange of TLS (RFC 8446 section 4.2.7), by preference.
///
/// X25519MLKEM768 (draft-ietf-tls-ecdhe-mlkem) protects recorded traffic from a later quantum computer. OpenSSL has it
/// from 3.5 on, or by a provider. The library that the process has loaded decides, not the one that it was built with.
/// A client that has no such group is answered as without it: the server chooses among the groups of the client.
///
/// In TLS 1.2 the list also names the curves of the peer's certificate (RFC 8422 section 5.1.1), which in TLS 1.3 is a
/// matter of the signature algorithms. P-521 is there for certificates, and last: a key exchange uses it if the client
/// has no other group, or sends a key share for no other.
public enum KeyExchange {
  /// The name of the post-quantum group.
  public static let postQuantumGroup = "X25519MLKEM768"

  private static let classicalGroups = "X25519:P-256:P-384:P-521"

  /// Whether the OpenSSL of this process has the post-quantum group.
  public static let hasPostQuantumGroup: Bool = {
    guard let context = SSL_CTX_new(TLS_server_method()) else { return false }
    defer {
      SSL_CTX_free(context)
      ERR_clear_error()
    }
    return sallyport_SSL_CTX_set1_groups_list(context, postQuantumGroup) == 1
  }()

  /// The groups that are offered, by preference.
  public static var groups: [String] {
    (hasPostQuantumGroup ? [postQuantumGroup] : []) + classicalGroups.split(separator: ":").map(String.init)
  }

  /// The offered groups and the library, for operators.
  public static var summary: String {
    let library = "OpenSSL \(OpenSSLProcess.version)"
    let remark = hasPostQuantumGroup ? library : "\(library) has no \(postQuantumGroup), which needs 3.5"
    return "\(groups.joined(separator: ", ")) (\(remark))"
  }

  /// Offers the groups in `context`.
  ///
  /// A server prefers the first group that the client has. Of a client, a server only knows the groups for which it
  /// sends key shares, and requests another one in a further round trip (section 4.1.4). So a client sends shares for
  /// the first two, which `*` marks: a server without the post-quantum group answers in one round trip.
  static func offer(in context: OpaquePointer, asClient: Bool) {
    let isOffered =
      hasPostQuantumGroup
      && (asClient
        ? sallyport_SSL_CTX_set1_groups_list(context, "*\(postQuantumGroup):*\(classicalGroups)") == 1
        : sallyport_SSL_CTX_set1_groups_list(context, "\(postQuantumGroup):\(classicalGroups)") == 1)
    // A constant list that every OpenSSL 3 accepts. A library before 3.5 with the group from a provider has no `*`.
    if !isOffered { _ = sallyport_SSL_CTX_set1_groups_list(context, classicalGroups) }
    ERR_clear_error()
  }
}
