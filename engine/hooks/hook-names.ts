/** The names of all hooks, as values. */
import type { DecidingHook, HookName, ToldHook } from '../../schema/contracts/hooks.ts'

export const decidingHooks = [
  'onRegister',
  'onInvite',
  'onRoute',
  'onAttemptFailed',
] as const satisfies readonly DecidingHook[]

const toldHooks = ['onAnswer', 'onEnd', 'onRecord'] as const satisfies readonly ToldHook[]

export const hookNames: readonly HookName[] = [...decidingHooks, ...toldHooks]

export const isHookName = (name: string): name is HookName =>
  (hookNames as readonly string[]).includes(name)

/** `onInvite` → `on_invite`, as figures spell it. */
export const figureOf = (hook: HookName): string =>
  hook.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
