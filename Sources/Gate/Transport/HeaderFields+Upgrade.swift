extension HeaderFields {
  /// The protocols that the `Upgrade` fields name, in their order (RFC 9110 section 7.8). Empty elements are skipped,
  /// and the others are not checked.
  public var upgradeProtocols: [String] {
    var protocols: [String] = []
    for value in values(of: "Upgrade") {
      for element in value.utf8.split(separator: UInt8(ascii: ",")) {
        let front = element.drop(while: Self.isSpace)
        guard let end = front.lastIndex(where: { !Self.isSpace($0) }) else { continue }
        protocols.append(String(Substring(front[...end])))
      }
    }
    return protocols
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

  /// Whether `Upgrade` names WebSocket, alone or among other protocols.
  public var offersWebSocket: Bool {
    isOnly("Upgrade", "websocket") || upgradeProtocols.contains { Self.isSame($0, "websocket") }
  }

  /// Whether the fields ask for an upgrade to another protocol than WebSocket, with or without `Connection`. A client
  /// that begins HTTP/2 by an upgrade sends `HTTP2-Settings` (RFC 7540 section 3.2.1).
  public var asksForForeignUpgrade: Bool {
    contains("HTTP2-Settings") || upgradeProtocols.contains { !Self.isSame($0, "websocket") }
  }
}
