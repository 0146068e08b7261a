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
  public var python: String { program("python3") }

  /// The path of a program that one of the packages brings.
  public func program(_ name: String) -> String { "\(folder)/bin/\(name)" }

  /// Installs the packages unless they are present. Returns whether they are present afterwards.
  ///
  /// A file that is written last names what is installed, so an interrupted installation and another version are
  /// replaced.
  public func arePresent() async -> Bool {
    let record = folder + "/installed.txt"
    let wanted = packages.joined(separator: "\n") + "\n"
    if (try? String(contentsOfFile: record, encoding: .utf8)) == wanted { return true }
    try? FileManager.default.removeItem(atPath: folder)
    guard await succeeds("/usr/bin/python3", ["-m", "venv", folder]),
      await succeeds(program("pip"), ["-q", "install"] + packages), await succeeds(python, ["-c", modules])
    else { return false }
    return (try? wanted.write(toFile: record, atomically: true, encoding: .utf8)) != nil
  }

  private func succeeds(_ path: String, _ arguments: [String]) async -> Bool {
    guard FileManager.default.isExecutableFile(atPath: path) else { return false }
    return (try? await ChildProcess.run(path, arguments, environment: OwnPlaces.proxies, within: .seconds(240)))?.exit
      == .code(0)
  }
}
