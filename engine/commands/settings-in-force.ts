/** Which settings are in force, and where each comes from; secrets are left out. */
import { isIP } from 'node:net'
import { isLoopback } from '../../schema/net/ip-address.ts'
import type { Config, Environment } from '../config.ts'
import { formatHostAndPort } from '../setting-kinds.ts'
import { type Setting, settings } from '../settings.ts'
import type { SettingInForce } from '../../schema/contracts/engine.ts'
import { nearMiss } from '../../schema/rules/names.ts'

/**
 * `fromFile`: names whose value is that of `.env`. An empty text counts as not set, as `readConfig`
 * has it.
 */
export const settingsInForce = (
  environment: Environment,
  fromFile: readonly string[],
): readonly SettingInForce[] =>
  Object.values(settings).map((setting) => inForce(setting, environment, fromFile))

function inForce(
  { name, isSecret, defaultText, whenUnset, allowed, meaning }: Setting<unknown>,
  environment: Environment,
  fromFile: readonly string[],
): SettingInForce {
  const text = environment[name] ?? ''
  const isGiven = text !== ''
  const value = isGiven ? text : defaultText
  return {
    name,
    value: isSecret || value === undefined ? null : withoutPassword(value),
    source: !isGiven ? 'default' : fromFile.includes(name) ? 'file' : 'environment',
    isSet: value !== undefined,
    isSecret,
    whenUnset,
    allowed,
    meaning,
  }
}

/** A URL may hold a user and a password, though none is asked for. */
const withoutPassword = (value: string): string => value.replace(/(:\/\/)[^/?#]*@/g, '$1…@')

/** Settings of `tollgate mcp`, which serves none of those above. */
const otherCommands = ['TOLLGATE_URL', 'TOLLGATE_KEY']

/**
 * Returns a line for each name that is set and does nothing: one that is almost a setting, wherever
 * it stands, and any other in `.env` that is none. They stop nothing: the environment is shared.
 */
export function settingNotes(
  environment: Environment,
  settingsFile: readonly string[],
): readonly string[] {
  const known = [...Object.values(settings).map(({ name }) => name), ...otherCommands]
  const isKnown = new Set(known)
  const unknown = Object.keys(environment).filter((name) => !isKnown.has(name))
  return unknown.flatMap((name) => {
    const meant = nearMiss(name, known)
    if (meant !== undefined) return [`${name} is not a setting; did you mean ${meant}?`]
    return settingsFile.includes(name) ? [`${name} in .env is not a setting`] : []
  })
}

/** One line for each HTTP listener that others can reach and that does not encrypt. */
export function plainHttpNotes({
  apiListen,
  apiTls,
  edgeListen,
  edgeTls,
}: Pick<Config, 'apiListen' | 'apiTls' | 'edgeListen' | 'edgeTls'>): readonly string[] {
  const listeners = [
    ['API', apiListen, apiTls],
    ['EDGE', edgeListen, edgeTls],
  ] as const
  return listeners.flatMap(([name, place, tls]) => {
    const isLocal = isIP(place.host) === 0 ? place.host === 'localhost' : isLoopback(place.host)
    if (isLocal || tls !== undefined) return []
    return [
      `${name}_LISTEN is ${formatHostAndPort(place)}, which serves plain HTTP: keys and passwords cross the network in clear; set ${name}_TLS_CERT and ${name}_TLS_KEY, or listen on loopback behind a proxy that has a certificate`,
    ]
  })
}
