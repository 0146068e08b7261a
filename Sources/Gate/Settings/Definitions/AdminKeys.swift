internal import ConfigurationEngine

/// The settings of the section `admin`, besides those of its console.
extension Keys {
  static let adminKeys = [KeyDefinition](adminListen, adminGroup, adminToken)

  static let adminListen = Key(
    "admin.listen", .adminAddress, example: "unix:/run/sallyport/admin.sock",
    "The admin server's address. A Unix socket is accessible only to its user (mode 0600). By default there is none."
  )
  static let adminGroup = Key(
    "admin.group", .text(form: "the name of a group"), example: "sallyport-admin",
    "The group whose members may use the admin socket too (mode 0660). By default only its user may.")
  static let adminToken = Key(
    "admin.token_file", .file, credential: "admin.token", example: "admin.token",
    "A file with the admin token on its first line. Required for a loopback address, not allowed for a socket.")
}
