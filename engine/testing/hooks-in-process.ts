/**
 * Hooks in the process of a test, with the checks and limits of those that run in a thread. Each
 * call of a test sees the hooks that were asked on its behalf.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type {
  DecidingHook,
  HookAnswer,
  HookArgument,
  HookDecisions,
  HookFallback,
  HookName,
  HookPort,
} from '../../schema/contracts/hooks.ts'
import { checkDecision } from '../../schema/rules/hook-decisions.ts'
import type { HookFunction } from '../hooks/loaded-hooks.ts'
import { describeThrown, problemLine } from '../hooks/thrown.ts'

interface HooksInProcessDeps {
  readonly hooks: ReadonlyMap<HookName, HookFunction>
  /** Names the file. */
  readonly by: string
  readonly timeoutMs: number
  readonly fallback: HookFallback
  /** Milliseconds of a steady clock, with fractions. */
  readonly now: () => number
  /** Resolves after so many milliseconds. */
  readonly pause: (milliseconds: number) => Promise<void>
}

/** A hook that was asked, and how long it took. */
export interface AskedHook {
  readonly hook: DecidingHook
  readonly milliseconds: number
  /** Null: it has said nothing, or has failed. */
  readonly given: HookDecisions[DecidingHook] | null
  /** Undefined: it was as it should be. */
  readonly failed: string | undefined
}

/** Our code, whose lines are not those of the hook. */
const ownFolder = import.meta.dirname

export class HooksInProcess implements HookPort {
  readonly #deps: HooksInProcessDeps
  readonly #asked = new AsyncLocalStorage<AskedHook[]>()

  constructor(deps: HooksInProcessDeps) {
    this.#deps = deps
  }

  /** Hooks that `work` asks are added to `asked`. */
  during<T>(asked: AskedHook[], work: () => T): T {
    return this.#asked.run(asked, work)
  }

  has(hook: HookName): boolean {
    return this.#deps.hooks.has(hook)
  }

  async ask<H extends DecidingHook>(
    hook: H,
    argument: HookArgument<H>,
  ): Promise<HookAnswer<HookDecisions[H]>> {
    const { by, fallback, now } = this.#deps
    const start = now()
    const answer = await this.#answer(hook, argument)
    const failed = typeof answer === 'string' ? answer : undefined
    const given = typeof answer === 'string' ? null : (answer.decision ?? null)
    this.#asked.getStore()?.push({ hook, milliseconds: now() - start, given, failed })
    if (typeof answer === 'string') return { kind: 'failed', by, why: answer, fallback }
    return answer.decision === undefined
      ? { kind: 'nothing' }
      : { kind: 'decided', decision: answer.decision, by, tenantId: null, fallback }
  }

  /** Nothing is told: a call that is not placed is neither answered nor over. */
  /** The call of the test says it. */
  unusable(): void {}

  tell(): void {}

  /** A line says why it has failed. */
  async #answer<H extends DecidingHook>(
    hook: H,
    argument: HookArgument<H>,
  ): Promise<{ readonly decision: HookDecisions[H] | undefined } | string> {
    const { timeoutMs, hooks } = this.#deps
    const over = new AbortController()
    try {
      const answer = hooks.get(hook)?.(asPlaced(argument))
      const settled = isPromise(answer)
        ? await Promise.race([answer, this.#limit(over.signal)])
        : answer
      if (settled === late) return `${hook} did not answer within ${timeoutMs} ms`
      const checked = checkDecision(hook, settled)
      if (checked.kind === 'wrong') return checked.why
      return { decision: checked.kind === 'decision' ? checked.decision : undefined }
    } catch (error) {
      return problemLine(describeThrown(error, ownFolder))
    } finally {
      over.abort()
    }
  }

  /** In steps: a machine that stands still for a moment takes nothing of the time of a hook. */
  async #limit(over: AbortSignal): Promise<typeof late> {
    const { timeoutMs, pause } = this.#deps
    for (let left = timeoutMs; left > 0 && !over.aborted; left -= STEP_MS)
      await pause(Math.min(left, STEP_MS))
    return late
  }
}

/** A copy, as a thread would get it. The hook is not told that no call follows. */
function asPlaced(argument: object): object {
  const { isSimulated: _, ...rest } = argument as { readonly isSimulated?: true }
  return structuredClone(rest)
}

const isPromise = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'

const late = Symbol('late')
const STEP_MS = 5
