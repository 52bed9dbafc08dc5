/** The rules about callers as one JSON text of a row. */
import type {
  CallerIdentityPolicy,
  ForwardedIdentity,
  OtherwisePresented,
  PresentableNumbers,
  PresentedNumber,
} from '../contracts/caller-identity.ts'

export const presentedNumbers = ['own', 'extension', 'default', 'as_sent'] as const
export const presentableNumbers = ['owned', 'list', 'any'] as const
export const otherwisePresented = ['replace', 'anonymous', 'refuse'] as const
export const forwardedIdentities = ['original', 'own'] as const

/** The most numbers and first digits in one list. */
export const MAX_LISTED_NUMBERS = 1_000

export interface CallerRules extends CallerIdentityPolicy {
  readonly emergencyNumber?: string | undefined
}

/** Undefined: it is no object. A member that is no such value is left out. */
export function readCallerRules(text: string): CallerRules | undefined {
  const stored = readJson(text)
  if (typeof stored !== 'object' || stored === null || Array.isArray(stored)) return undefined
  const of = <Value extends string>(name: string, values: readonly Value[]): Value | undefined =>
    values.find((value) => value === Reflect.get(stored, name))
  const numbers: unknown = Reflect.get(stored, 'numbers')
  const emergency: unknown = Reflect.get(stored, 'emergency_number')
  return {
    present: of<PresentedNumber>('present', presentedNumbers),
    allowed: of<PresentableNumbers>('allowed', presentableNumbers),
    otherwise: of<OtherwisePresented>('otherwise', otherwisePresented),
    forwarded: of<ForwardedIdentity>('forwarded', forwardedIdentities),
    numbers: Array.isArray(numbers)
      ? numbers.filter((each) => typeof each === 'string')
      : undefined,
    emergencyNumber: typeof emergency === 'string' ? emergency : undefined,
  }
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
