/** The hooks of an imported file: functions by name, or in the default export. */
import type { HookName } from '../../schema/contracts/hooks.ts'
import { hookNames, isHookName } from './hook-names.ts'

export type HookFunction = (argument: unknown) => unknown

export interface HooksOfFile {
  readonly hooks: ReadonlyMap<HookName, HookFunction>
  /** The default export, where it is a function: middleware of drachtio-srf. */
  readonly middleware: HookFunction | undefined
  readonly warnings: readonly string[]
}

type ReadHooks =
  | ({ readonly kind: 'hooks' } & HooksOfFile)
  | { readonly kind: 'problem'; readonly message: string }

/** @param exported the namespace of the module. */
export function hooksOf(exported: Readonly<Record<string, unknown>>): ReadHooks {
  const main = defaultOf(exported)
  const objects = [main, exported['default']].filter(isObject)
  const hooks = new Map<HookName, HookFunction>()
  for (const hook of hookNames) {
    const named = exported[hook]
    const owner = objects.find((each) => each[hook] !== undefined && each[hook] !== null)
    const value = named ?? owner?.[hook]
    if (value === undefined || value === null) continue
    if (!isFunction(value))
      return {
        kind: 'problem',
        message: `${hook} is a ${typeof value} where a function is expected`,
      }
    // A method of an object, or of an instance of a class, has it as `this`.
    hooks.set(hook, named === undefined ? (argument) => value.call(owner, argument) : value)
  }
  const names = new Set([exported, ...objects].flatMap((each) => Object.keys(each)))
  const unknown = [...names].filter((name) => /^on[A-Z]/.test(name) && !isHookName(name))
  return {
    kind: 'hooks',
    hooks,
    middleware: isFunction(main) ? main : undefined,
    warnings: unknown.map(
      (name) => `${name} is exported, and is no hook; hooks are ${hookNames.join(', ')}`,
    ),
  }
}

/** A compiler that makes CommonJS puts the default export into `default` of `module.exports`. */
function defaultOf(exported: Readonly<Record<string, unknown>>): unknown {
  const main = exported['default']
  if (!isObject(main) || !('default' in main)) return main
  // So does who writes `exports.default = (srf) => …` by hand, without the mark of a compiler.
  return main['__esModule'] === true || isFunction(main['default']) ? main['default'] : main
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

const isFunction = (value: unknown): value is HookFunction => typeof value === 'function'
