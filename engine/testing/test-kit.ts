/** Shows what would become of calls, by the parts of the engine that decide about real ones. */
import { basename, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { moneyToDecimal } from '../../schema/columns.ts'
import type { SimulatedSource } from '../../schema/contracts/engine.ts'
import { all } from '../../schema/sql/query.ts'
import type { LocalStore } from '../../schema/storage/store.ts'
import { candidateFacts } from '../call/hooks/facts.ts'
import type { ForeseenCall } from '../call/simulate.ts'
import type { AnswerOf } from '../call/simulated-attempts.ts'
import type { Config } from '../config.ts'
import { hooksOf } from '../hooks/loaded-hooks.ts'
import { describeThrown, problemLine } from '../hooks/thrown.ts'
import { CallTime } from './call-time.ts'
import { type AskedHook, HooksInProcess } from './hooks-in-process.ts'
import type {
  TestedCall,
  TestedHook,
  TestedInvite,
  TestedPrice,
  TestedSource,
  TestKit,
  TestKitOptions,
} from './published.ts'
import { extensionIn } from './registered-phones.ts'
import { configOf, openEngine, type TestedEngine } from './tested-engine.ts'

export interface TestKitWorld {
  /** Milliseconds UTC. */
  readonly wallNow: () => number
  /** Milliseconds of a steady clock, with fractions. */
  readonly steadyNow: () => number
  readonly pause: (milliseconds: number) => Promise<void>
  readonly randomBytes: (size: number) => Buffer
}

/** @throws {Error} the seed file, the file of hooks or a setting cannot be used. */
export async function openKit(options: TestKitOptions, world: TestKitWorld): Promise<TestKit> {
  const config = configOf(options)
  const hooks = await hooksIn(options, config, world)
  const { randomBytes } = world
  const engineDeps = { openedAt: world.wallNow(), config, hooks, randomBytes }
  const tested = await openEngine(options, engineDeps)
  const time = new CallTime()
  const close = (): void => tested.store.close()
  return {
    call: async (invite) => {
      const at = timeOf(invite, world)
      return time.during(at, () => callIn(tested, hooks, invite, at))
    },
    close,
  }
}

async function callIn(
  { engine, store }: TestedEngine,
  hooks: HooksInProcess | undefined,
  invite: TestedInvite,
  at: number,
): Promise<TestedCall> {
  const asked: AskedHook[] = []
  const source = await sourceOf(invite.source, store)
  const from = callerOf(invite, source)
  const headers = lowerCase(invite.headers ?? {})
  const answerOf = answersIn(invite)
  const called = { to: invite.to, callId: undefined, headers, at }
  const request = { source, from, ...called, answerOf, tenantId: null }
  const simulate = () => engine.simulate(request)
  const call = await (hooks === undefined ? simulate() : hooks.during(asked, simulate))
  if (call === undefined) throw new Error(`source: ${named(invite.source)} may not call`)
  return { ...viewOf(call, asked), price: await priceOf(call, store) }
}

async function hooksIn(
  { hooks }: TestKitOptions,
  config: Config,
  { steadyNow: now, pause, randomBytes }: TestKitWorld,
): Promise<HooksInProcess | undefined> {
  if (hooks === undefined || config.hooks === undefined) return undefined
  const isFile = typeof hooks === 'string'
  const exported = isFile ? await imported(hooks, randomBytes) : hooks
  const read = hooksOf(exported as Readonly<Record<string, unknown>>)
  if (read.kind === 'problem') throw new Error(`hooks: ${read.message}`)
  const [warning] = read.warnings
  if (warning !== undefined) throw new Error(`hooks: ${warning}`)
  const { timeoutMs, fallback } = config.hooks
  const by = isFile ? basename(hooks) : 'hooks'
  return new HooksInProcess({ hooks: read.hooks, by, timeoutMs, fallback, now, pause })
}

/** @throws {Error} it cannot be loaded: one line, with file and line where they are known. */
async function imported(file: string, randomBytes: TestKitWorld['randomBytes']): Promise<object> {
  // Another query is another module: what a file remembers of a kit is not there in the next.
  const fresh = `?kit=${randomBytes(4).toString('hex')}`
  try {
    return (await import(/* @vite-ignore */ pathToFileURL(resolve(file)).href + fresh)) as object
  } catch (error) {
    const line = problemLine(describeThrown(error, import.meta.dirname))
    throw new Error(`hooks: ${line}`, { cause: error })
  }
}

function timeOf({ at }: TestedInvite, { wallNow }: TestKitWorld): number {
  if (at === undefined) return wallNow()
  const time = new Date(at).getTime()
  if (Number.isNaN(time)) throw new Error(`at: ${String(at)} is no time`)
  return time
}

/** @throws {Error} there is none. */
async function sourceOf(source: TestedSource, store: LocalStore): Promise<SimulatedSource> {
  if (source === 'trusted') return { kind: 'trusted' }
  if ('extension' in source) return { kind: 'extension', ...extensionIn(source.extension) }
  if ('address' in source) return { kind: 'address', port: 5_060, ...source }
  const { carrier } = source
  const query = store.db.selectFrom('carrier').select(['id', 'name']).orderBy('name')
  const found = await all(
    store,
    query.where(typeof carrier === 'number' ? 'id' : 'name', '=', carrier),
  )
  const [first, second] = found
  if (second !== undefined)
    throw new Error(`source: several tenants have a carrier ${carrier}: name it by its id`)
  if (first !== undefined) return { kind: 'carrier', carrierId: first.id }
  const others = (await all(store, query.limit(10))).map(({ name }) => name).join(', ')
  throw new Error(`source: there is no carrier ${carrier}; there is ${others || 'none'}`)
}

/** @throws {Error} nobody is named as caller, or a phone as another one. */
function callerOf({ from }: TestedInvite, source: SimulatedSource): string {
  const own = source.kind === 'extension' ? source.extension : undefined
  const caller = from ?? own
  if (caller === undefined) throw new Error('from: the number of the caller is missing')
  if (own !== undefined && caller !== own)
    throw new Error(`from: must be ${own}, as a phone calls as itself`)
  return caller
}

/** @throws {Error} a status is none of a final answer. */
function answersIn({ answers = {} }: TestedInvite): AnswerOf {
  for (const [name, status] of Object.entries(answers))
    if (status !== 0 && !(Number.isInteger(status) && status >= 200 && status <= 699))
      throw new Error(`answers: ${name} has ${status}; allowed is 0, or from 200 to 699`)
  const given = new Map(Object.entries(answers))
  return (destination) =>
    given.get(destination.uri) ?? given.get(candidateFacts(destination).name ?? '') ?? 200
}

const lowerCase = (headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

function named(source: TestedSource): string {
  if (source === 'trusted') return source
  return String(Object.values(source)[0])
}

function viewOf(call: ForeseenCall, asked: readonly AskedHook[]): Omit<TestedCall, 'price'> {
  const { invite } = call
  return {
    outcome: outcomeOf(call),
    from: call.callerNumber,
    to: call.calledNumber,
    direction: call.direction,
    isEmergency: call.isEmergency,
    candidates: candidatesOf(call),
    requestUri: invite?.uri ?? null,
    headers: lowerCase(invite?.headers ?? {}),
    hooks: asked.map((each) => hookView(each, call)),
    tags: call.tags,
    record: call.isToBeRecorded ?? null,
  }
}

const candidatesOf = ({ candidates, attempts }: ForeseenCall): TestedCall['candidates'] =>
  candidates.map(({ kind, uri, name, withheld }, index) => {
    const status = attempts[index] ?? null
    return { kind, uri, name, withheld, status }
  })

function outcomeOf(call: ForeseenCall): TestedCall['outcome'] {
  const { verdict } = call
  if (verdict.kind === 'refused') {
    const { kind, status, reason, code } = verdict
    return { kind, status, reason, code }
  }
  // Nothing is answered to a source that is banned.
  if (verdict.kind === 'dropped')
    return { kind: 'refused', status: 0, reason: '', code: verdict.code }
  const isTaken = (status: number | null) => status !== null && status >= 200 && status < 300
  const { uri = '', name = null } = candidatesOf(call).find(({ status }) => isTaken(status)) ?? {}
  return { kind: 'connected', uri, name }
}

function hookView(
  { hook, milliseconds, failed, given }: AskedHook,
  call: ForeseenCall,
): TestedHook {
  // Asked about several attempts, it may have said nothing about some.
  if (hook === 'onAttemptFailed')
    return { hook, decision: given, failed: failed ?? null, milliseconds }
  const shown = call.hooks.find((each) => each.hook === hook)
  const decision = shown?.decision ?? null
  return { hook, decision, failed: failed ?? shown?.failed ?? null, milliseconds }
}

async function priceOf({ payment }: ForeseenCall, store: LocalStore): Promise<TestedPrice | null> {
  if (payment.kind !== 'asked' || payment.tariff === null || payment.minuteMicros === null)
    return null
  const { customerId } = payment.payer ?? {}
  const query = store.db.selectFrom('customer').select('name')
  const [payer] =
    customerId === undefined ? [] : await all(store, query.where('id', '=', customerId))
  const perMinute = moneyToDecimal(payment.minuteMicros)
  return { perMinute, currency: payment.tariff.currency, payer: payer?.name ?? null }
}
