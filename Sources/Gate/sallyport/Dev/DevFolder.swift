internal import SimulatedDevice

/// The folder of a development gate: its CA, configuration, state and admin socket.
struct DevFolder {
  let path: String

  /// The folder that `sallyport dev` uses unless another one is named; `nil` if the environment names no place.
  static func standard(_ environment: [String: String]) -> DevFolder? {
    AuthorityFolder.standard(environment).map { DevFolder(path: $0.path) }
  }

  /// The configuration that `sallyport dev` writes.
  var configuration: String { path + "/sallyport.yaml" }

  /// The socket of the gate's admin server; `nil` if its path is too long for one.
  var adminSocket: String? {
    let socket = path + "/admin.sock"
    // The path of a Unix socket has at most 107 bytes.
    return socket.utf8.count <= 107 ? socket : nil
  }
}
