internal import Settings

extension SettingsLoader {
  /// Reads the configuration.
  ///
  /// - Throws: `.configuration` with one line for each fault.
  func settings() throws(SallyportError) -> GateSettings {
    do throws(ConfigurationErrors) {
      return try load()
    } catch {
      let hint = file == nil ? "\nhint: no configuration file was named: -c FILE does" : ""
      throw SallyportError(.configuration, lines: error.description + hint)
    }
  }
}
