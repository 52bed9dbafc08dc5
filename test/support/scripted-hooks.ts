/** Code of the operator that answers what a test says, and remembers what it was asked and told. */
import type { HookSources } from '../../engine/call/hooks/call-hooks.ts'
import type { SetRecord } from '../../engine/dispatcher/destination-set.ts'
import type { ExtensionRecord } from '../../engine/registrar/extension-directory.ts'
import type { AgentRecord, CarrierRecord } from '../../engine/routing/routing-records.ts'
import { unchanged } from '../../schema/rules/numbers.ts'
import type {
  DecidingHook,
  HookAnswer,
  HookArgument,
  HookDecisions,
  HookName,
  ToldHook,
} from '../../schema/contracts/hooks.ts'
import { sampleSet } from '../engine/dispatcher/samples.ts'

type Answers = {
  [H in DecidingHook]?: (
    argument: HookArgument<H>,
  ) => HookAnswer<HookDecisions[H]> | Promise<HookAnswer<HookDecisions[H]>>
}

export class ScriptedHooks implements HookSources {
  /** A hook without an answer is not there. */
  readonly answers: Answers = {}
  readonly asked: { readonly hook: DecidingHook; readonly argument: unknown }[] = []
  /** What calls could not use. */
  readonly useless: string[] = []
  readonly told: { readonly hook: ToldHook; readonly argument: unknown }[] = []
  /** Hooks that are only told; none is there unless a test adds it. */
  readonly listening = new Set<ToldHook>()
  sets: readonly SetRecord[] = []
  carriers: readonly CarrierRecord[] = []
  agents: readonly AgentRecord[] = []
  extensions: readonly ExtensionRecord[] = []
  isRecordable = true
  payer: { readonly id: number; readonly name: string } | undefined

  readonly canRecord = (): boolean => this.isRecordable
  readonly payerOf = () => this.payer
  readonly port: HookSources['port'] = {
    has: (hook: HookName) =>
      Object.hasOwn(this.answers, hook) || this.listening.has(hook as ToldHook),
    ask: async <H extends DecidingHook>(hook: H, argument: HookArgument<H>) => {
      this.asked.push({ hook, argument })
      const answer = this.answers[hook]
      return answer === undefined ? { kind: 'nothing' as const } : answer(argument)
    },
    unusable: (hook, by, why) => void this.useless.push(`${by}, ${hook}: ${why}`),
    tell: (hook, argument) => void this.told.push({ hook, argument }),
  }

  readonly records: HookSources['records'] = {
    setsNamed: (wanted) =>
      this.sets.filter(({ setId, name }) => setId === wanted || name === wanted),
    carriersNamed: (wanted) =>
      this.carriers.filter(({ carrierId, name }) => carrierId === wanted || name === wanted),
    agentsNamed: (wanted) =>
      this.agents.filter(({ agentId, name }) => agentId === wanted || name === wanted),
    extensionsNamed: (extension, isMeant) =>
      this.extensions.filter((each) => each.extension === extension && isMeant(each)),
  }

  /** What the hook was asked, the oldest first. */
  argumentsOf<H extends DecidingHook>(hook: H): readonly HookArgument<H>[] {
    return this.asked
      .filter((each) => each.hook === hook)
      .map(({ argument }) => argument as HookArgument<H>)
  }
}

const BY = 'hooks.ts'

export const decides =
  <D>(decision: D, more: { readonly tenantId?: number; readonly fallback?: 'refuse' } = {}) =>
  () =>
    ({ kind: 'decided', decision, by: BY, tenantId: null, fallback: 'continue', ...more }) as const

export const fails = (fallback: 'continue' | 'refuse') => () =>
  ({ kind: 'failed', by: BY, why: 'hooks.ts:3: it threw', fallback }) as const

export const namedSet = (setId: number, name: string, tenantId: number | null = null): SetRecord =>
  sampleSet([], { setId, name, tenantId })

export const namedCarrier = (
  carrierId: number,
  name: string,
  tenantId: number | null = null,
): CarrierRecord => ({
  carrierId,
  name,
  tenantId,
  customerId: null,
  payer: 'customer',
  isActive: true,
  direction: 'both',
  auth: {
    type: 'ip',
    username: null,
    password: null,
    realm: null,
    fromUser: null,
    fromDomain: null,
    expiresSeconds: null,
  },
  callerId: { mode: 'pass', value: null },
  numberRules: { in: unchanged, out: unchanged },
  maxCalls: 0,
  maxCps: 0,
  ratePlanId: null,
  inboundSetId: null,
  gateways: [],
})

export const namedAgent = (
  agentId: number,
  name: string,
  tenantId: number | null = null,
): AgentRecord => ({
  agentId,
  name,
  tenantId,
  extension: `9${agentId}`,
  uri: `sip:${name}@127.0.0.1`,
  maxCalls: 0,
  isActive: true,
})
