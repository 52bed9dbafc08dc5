/** Which settings are in force, and where each comes from; secrets are left out. */
import type { SettingInForce } from '../../schema/contracts/engine.ts'
import type { Environment } from '../config.ts'
import { type Setting, settings } from '../settings.ts'

/** `fromFile`: names whose value is that of `.env`. An empty text counts as not set, as `readConfig` has it. */
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
