/// The folder of a development gate: its CA, configuration, state and admin socket.
struct DevFolder {
  let path: String

  /// The folder that `sallyport dev` uses unless another one is named, in the user's data folder (XDG Base Directory).
  /// A shared folder is never used, because the folder holds private keys. `nil` if the environment names no place.
  static func standard(_ environment: [String: String]) -> DevFolder? {
    func absolute(_ name: String) -> String? { environment[name].flatMap { $0.hasPrefix("/") ? $0 : nil } }
    let data = absolute("XDG_DATA_HOME") ?? absolute("HOME").map { $0 + "/.local/share" }
    return data.map { DevFolder(path: $0 + "/sallyport/dev") }
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
