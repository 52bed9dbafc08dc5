/**
 * The operator's code as one: first the file, then the routing webhook of the source, unless the
 * file has refused the call or chosen where it goes. Fields of the file win.
 */
import type {
  DecidingHook,
  HookAnswer,
  HookArgument,
  HookDecisions,
  HookName,
  HookPort,
  InviteDecision,
  ToldHook,
} from '../../schema/contracts/hooks.ts'

export class ChainedHooks implements HookPort {
  readonly #file: HookPort
  readonly #webhooks: HookPort

  constructor(file: HookPort, webhooks: HookPort) {
    this.#file = file
    this.#webhooks = webhooks
  }

  has(hook: HookName): boolean {
    return this.#file.has(hook) || this.#webhooks.has(hook)
  }

  async ask<H extends DecidingHook>(
    hook: H,
    argument: HookArgument<H>,
  ): Promise<HookAnswer<HookDecisions[H]>> {
    const first: HookAnswer<HookDecisions[H]> = this.#file.has(hook)
      ? await this.#file.ask(hook, argument)
      : { kind: 'nothing' }
    if (isFinal(first) || !this.#webhooks.has(hook)) return first
    return together(first, await this.#webhooks.ask(hook, argument))
  }

  unusable(hook: DecidingHook, by: string, why: string): void {
    this.#file.unusable(hook, by, why)
    this.#webhooks.unusable(hook, by, why)
  }

  tell<H extends ToldHook>(hook: H, argument: HookArgument<H>): void {
    this.#file.tell(hook, argument)
  }
}

type Answer = HookAnswer<HookDecisions[DecidingHook]>

const targets: readonly (keyof InviteDecision)[] = [
  'refuse',
  'set',
  'carriers',
  'extension',
  'agent',
  'uri',
]

function isFinal(answer: Answer): boolean {
  if (answer.kind === 'failed') return answer.fallback === 'refuse'
  return answer.kind === 'decided' && targets.some((field) => field in answer.decision)
}

/** A decision of a tenant's webhook holds within its tenant, also beside fields of the file. */
function together<D extends object>(first: HookAnswer<D>, second: HookAnswer<D>): HookAnswer<D> {
  if (second.kind === 'nothing') return first
  if (second.kind === 'failed') return isFinal(second) || first.kind === 'nothing' ? second : first
  if (first.kind !== 'decided' || 'refuse' in second.decision) return second
  return {
    kind: 'decided',
    decision: { ...second.decision, ...first.decision },
    by: `${first.by}, ${second.by}`,
    byField: { ...authored(second), ...authored(first) },
    tenantId: second.tenantId,
    fallback: first.fallback === 'refuse' ? 'refuse' : second.fallback,
  }
}

const authored = ({ decision, by }: { readonly decision: object; readonly by: string }) =>
  Object.fromEntries(Object.keys(decision).map((field) => [field, by]))
