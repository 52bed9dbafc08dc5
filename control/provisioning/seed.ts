/**
 * `tollgate seed FILE.json`: a file of resources brought into the database, all or nothing. Safe to
 * repeat: an element is found again by its name and put in the place of what is stored.
 */
import { z } from 'zod'
import type { Store } from '../../schema/open.ts'
import { transaction } from '../../schema/query.ts'
import { hashPasswordNow } from '../auth/users/passwords.ts'
import { CustomerStore } from '../billing/customer-store.ts'
import { RatePlanStore } from '../billing/rates/rate-plan-store.ts'
import { RateStore } from '../billing/rates/rate-store.ts'
import { ApiError, type ErrorDetail } from '../http/api-error.ts'
import { parseJson } from '../http/json.ts'
import { problemsOf } from '../http/validate.ts'
import { AgentStore } from '../pbx/agent-store.ts'
import { ExtensionStore } from '../pbx/extension-store.ts'
import { CarrierStore } from '../sbc/carrier-store.ts'
import { DispatcherStore } from '../sbc/dispatcher-store.ts'
import { InboundRouteStore } from '../sbc/routes/inbound-route-store.ts'
import { OutboundRouteStore } from '../sbc/routes/outbound-route-store.ts'
import { TenantStore } from '../tenants/tenant-store.ts'
import type { Reach, Writable } from './resource.ts'

/** In the order in which they may refer to each other. */
const sections = [
  'tenants',
  'rate_plans',
  'rates',
  'customers',
  'dispatcher',
  'carriers',
  'outbound_routes',
  'extensions',
  'ai_agents',
  'inbound_routes',
] as const

type Section = (typeof sections)[number]

/** How many elements of each section were new, and how many were there already. */
export type SeedReport = Readonly<
  Record<Section, { readonly created: number; readonly updated: number }>
>

/** The file cannot be applied; nothing of it was. `message` is one line that names the element. */
export class SeedRefused extends Error {
  override readonly name = 'SeedRefused'
  /** One line each, `carriers[2].gateways[0].port: …`. */
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : ''
    super(`${problems[0] ?? ''}${more}`)
    this.problems = problems
  }
}

const maxElements = 200_000

type Body = Readonly<Record<string, unknown>>
type Elements = Readonly<Record<Section, readonly Body[]>>
type Writers = Readonly<Record<Section, Writable<z.ZodObject>>>

/**
 * Applies a seed file in one transaction.
 *
 * @param now milliseconds UTC.
 * @throws {SeedRefused} the file is not valid, or contradicts what is stored.
 */
export function seedFile(store: Store, text: string, now: number): SeedReport {
  const writers = writersOf(store)
  const elements = checked(read(text), writers)
  // Slow by intent, so not while the write lock is held.
  const hashes = elements.customers.map(({ password }) =>
    typeof password === 'string' ? hashPasswordNow(password) : undefined,
  )
  const reach: Reach = { tenantId: null, actor: 'seed', now }
  return transaction(store, () =>
    bySection((section) =>
      apply(
        section,
        writers[section],
        elements[section],
        reach,
        section === 'customers' ? hashes : [],
      ),
    ),
  )
}

function apply(
  section: Section,
  writer: Writable<z.ZodObject>,
  bodies: readonly Body[],
  reach: Reach,
  hashes: readonly (string | undefined)[],
): SeedReport[Section] {
  const paths = new Map<number, string>()
  let created = 0
  for (const [index, body] of bodies.entries()) {
    const path = `${section}[${index}]`
    refusedAt(path, () => {
      const known = writer.identify(body)
      const twin = known === undefined ? undefined : paths.get(known)
      if (twin !== undefined) throw new SeedRefused([`${path}: repeats ${twin}`])
      if (known === undefined) created += 1
      else writer.replace(known, body, reach, hashes[index])
      paths.set(known ?? writer.insert(body, reach, hashes[index]), path)
    })
  }
  return { created, updated: bodies.length - created }
}

/** Names the element in what a store refuses. */
function refusedAt(path: string, work: () => void): void {
  try {
    work()
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const details = error.details ?? [{ path: '', message: error.message }]
    throw new SeedRefused(details.map((detail) => lineOf(path, detail)))
  }
}

function read(text: string): Readonly<Record<Section, readonly unknown[]>> {
  // A byte order mark is what some editors put in front.
  const parsed = parseJson(text.replace(/^\uFEFF/, ''))
  if (parsed.kind === 'problem') throw new SeedRefused([lineOf('', parsed.problem)])
  const file = seedShape.safeParse(parsed.value)
  if (!file.success)
    throw new SeedRefused(problemsOf(file.error).map((problem) => lineOf('', problem)))
  const count = sections.reduce((sum, section) => sum + file.data[section].length, 0)
  if (count > maxElements) throw new SeedRefused([`the file has more than ${maxElements} elements`])
  return file.data
}

/** Every problem of the file at once, as far as it can be told without the database. */
function checked(
  elements: Readonly<Record<Section, readonly unknown[]>>,
  writers: Writers,
): Elements {
  const problems: string[] = []
  const bodies = bySection((section) =>
    elements[section].flatMap((element, index) => {
      const parsed = writers[section].body.safeParse(element)
      if (parsed.success) return [parsed.data]
      for (const problem of problemsOf(parsed.error))
        problems.push(lineOf(`${section}[${index}]`, problem))
      return []
    }),
  )
  if (problems.length > 0) throw new SeedRefused(problems)
  return bodies
}

/** `nodes.0.host` of `dispatcher[1]` → `dispatcher[1].nodes[0].host: …` */
function lineOf(element: string, { path, message }: ErrorDetail): string {
  const inner = path
    .split('.')
    .filter((part) => part !== '')
    .map((part) => (/^\d+$/.test(part) ? `[${part}]` : `.${part}`))
    .join('')
  const place = element + (element === '' ? inner.replace(/^\./, '') : inner)
  return `${place === '' ? 'the file' : place}: ${message}`
}

const seedShape = z.strictObject(bySection(() => z.array(z.unknown()).default([])))

const writersOf = (store: Store): Writers => ({
  tenants: new TenantStore(store),
  rate_plans: new RatePlanStore(store),
  rates: new RateStore(store),
  customers: new CustomerStore(store),
  dispatcher: new DispatcherStore(store),
  carriers: new CarrierStore(store),
  outbound_routes: new OutboundRouteStore(store),
  extensions: new ExtensionStore(store),
  ai_agents: new AgentStore(store),
  inbound_routes: new InboundRouteStore(store),
})

/** One value per section, made in the order of the sections. */
function bySection<T>(make: (section: Section) => T): Record<Section, T> {
  return {
    tenants: make('tenants'),
    rate_plans: make('rate_plans'),
    rates: make('rates'),
    customers: make('customers'),
    dispatcher: make('dispatcher'),
    carriers: make('carriers'),
    outbound_routes: make('outbound_routes'),
    extensions: make('extensions'),
    ai_agents: make('ai_agents'),
    inbound_routes: make('inbound_routes'),
  }
}
