/** The settings of the process as the API shows them. */
export interface SettingInForce {
  readonly name: string
  /** As text; null: unset, or a secret. */
  readonly value: string | null
  readonly source: 'environment' | 'file' | 'default'
  /** It has a value, which is shown unless it is a secret. */
  readonly isSet: boolean
  readonly isSecret: boolean
  /** What it means to be unset; a default as text, or in words. */
  readonly whenUnset: string
  readonly allowed: string
  readonly meaning: string
}

export interface SettingsInForce {
  readonly settings: readonly SettingInForce[]
  /** What is set and does nothing, one line each. */
  readonly notes: readonly string[]
}
