import Foundation

/// Packages from PyPI, in a virtual environment of their own.
public struct PythonPackages: Sendable {
  private let folder: String
  private let packages: [String]
  private let modules: String

  /// - Parameters:
  ///   - name: The name of the environment's folder in `.build`.
  ///   - packages: As pip names them, with their versions.
  ///   - modules: A Python statement that imports them.
  public init(name: String, packages: [String], modules: String) {
    folder = ProjectFile.path(".build/\(name)")
    (self.packages, self.modules) = (packages, modules)
  }

  /// The path of the interpreter.
  public var python: String { folder + "/bin/python3" }

  /// Installs the packages unless they are present. Returns whether they are present afterwards.
  public func arePresent() async -> Bool {
    if await succeeds(python, ["-c", modules]) { return true }
    guard await succeeds("/usr/bin/python3", ["-m", "venv", folder]),
      await succeeds(folder + "/bin/pip", ["-q", "install"] + packages)
    else { return false }
    return await succeeds(python, ["-c", modules])
  }

  private func succeeds(_ path: String, _ arguments: [String]) async -> Bool {
    guard FileManager.default.isExecutableFile(atPath: path) else { return false }
    return (try? await ChildProcess.run(path, arguments, within: .seconds(240)))?.exit == .code(0)
  }
}
