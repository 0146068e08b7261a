internal import ArgumentParser
internal import Commands
internal import Foundation
internal import OIDCClient

/// Where the key of the tokens is kept.
enum KeyPlace: String, ExpressibleByArgument, CaseIterable {
  /// In the file if there is one, otherwise in the keyring if one runs, otherwise in the file.
  case automatic = "auto"
  /// In the keyring of the desktop (Secret Service).
  case keyring
  /// In a file.
  case file
}

/// The folder of the tokens, and the place of their key.
struct StorePlace {
  let folder: String
  let keyFile: String
  let key: KeyPlace

  init(folder: String?, key: KeyPlace, environment: [String: String]) throws(Failure) {
    self.key = key
    if let folder = folder ?? environment["BEARER_STORE"], !folder.isEmpty {
      self.folder = folder
      keyFile = folder + "/key"
    } else if let state = Self.base("XDG_STATE_HOME", ".local/state", environment),
      let data = Self.base("XDG_DATA_HOME", ".local/share", environment)
    {
      // Apart from each other: a copy of one folder alone says nothing.
      self.folder = state + "/sallyport/bearer"
      keyFile = data + "/sallyport/bearer/key"
    } else {
      throw Failure(.noInput, "there is no folder for the tokens", hint: "set HOME, or use --store DIR")
    }
  }

  /// The folder from the root on: the same from whatever folder the command is started.
  var folderFromRoot: String { URL(fileURLWithPath: folder).standardizedFileURL.path }

  func store() throws(Failure) -> any TokenStore {
    TokenFolder(path: folder, key: try source())
  }

  private func source() throws(Failure) -> any TokenKeySource {
    let file = TokenKeyFile(path: keyFile)
    let keyring = KeyringKey(
      folder: folderFromRoot, earlierFolder: folder == folderFromRoot ? nil : folder)
    switch key {
    case .file: return file
    case .keyring: return keyring
    case .automatic:
      if FileManager.default.fileExists(atPath: keyFile) { return file }
      return keyring.isAvailable ? keyring : file
    }
  }

  private static func base(_ variable: String, _ folder: String, _ environment: [String: String]) -> String? {
    if let path = environment[variable], path.hasPrefix("/") { return path }
    guard let home = environment["HOME"], home.hasPrefix("/") else { return nil }
    return home + "/" + folder
  }
}
