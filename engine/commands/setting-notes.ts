/** What is odd about the settings, though not wrong. */
import { nearMiss } from '../../schema/rules/near-miss.ts'
import type { Environment } from '../config.ts'
import { settings } from '../settings.ts'

/** Settings of `tollgate mcp` and of `tollgate migrate`, which serve none of those above. */
const elsewhere = ['TOLLGATE_URL', 'TOLLGATE_KEY', 'DATABASE_URL']

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

/** The same, for what serves: other commands read `DATABASE_URL`. */
export function servingNotes(
  environment: Environment,
  settingsFile: readonly string[],
): readonly string[] {
  const notes = settingNotes(environment, settingsFile)
  return environment['DATABASE_URL'] === undefined ? notes : [...notes, notServed]
}

const notServed =
  'DATABASE_URL is only for `tollgate migrate --from`: this version serves from the SQLite database of DATABASE_PATH'
