/** What is odd about the settings, though not wrong. */
import { nearMiss } from '../../schema/rules/names.ts'
import type { Environment } from '../config.ts'
import { settings } from '../settings.ts'

/** Settings of `tollgate mcp`, which serves none of those above. */
const elsewhere = ['TOLLGATE_URL', 'TOLLGATE_KEY']

/**
 * What is set and does nothing, one line each: a name that is almost a setting, wherever it stands, and any other name in
 * `.env` that is none. They stop nothing: the environment is shared.
 */
export function settingNotes(
  environment: Environment,
  settingsFile: readonly string[],
): readonly string[] {
  const known = [...Object.values(settings).map(({ name }) => name), ...elsewhere]
  const isKnown = new Set(known)
  const unknown = Object.keys(environment).filter((name) => !isKnown.has(name))
  return unknown.flatMap((name) => {
    const meant = nearMiss(name, known)
    if (meant !== undefined) return [`${name} is not a setting; did you mean ${meant}?`]
    return settingsFile.includes(name) ? [`${name} in .env is not a setting`] : []
  })
}
