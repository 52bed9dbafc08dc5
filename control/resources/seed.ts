/**
 * `tollgate seed FILE.json`: loads a file of resources into the database, all or nothing. Safe to
 * repeat: an element is found by its name and replaces the stored row; a rate keeps what the file
 * does not name of it.
 */
import type { RequestScope } from '../auth/tenants.ts'
import { z } from 'zod'
import type { LedgerPort } from '../../schema/contracts/charging.ts'
import type { Store } from '../../schema/storage/store.ts'
import { first, transaction } from '../../schema/sql/query.ts'
import { hashPasswordNow, isPasswordNow } from '../auth/passwords.ts'
import { ApiError, type RequestProblem } from '../http/api-error.ts'
import { notJson, parseJson } from '../http/body.ts'
import { withKnownTenant } from '../http/tenant-spelling.ts'
import { problemsOf, unknownField } from '../http/validate.ts'
import { namesBehind, sipTarget } from '../../schema/net/sip-target.ts'
import type { OwnNetwork } from '../../schema/rules/gateways.ts'
import { completed, patched } from './patch.ts'
import { manyRates } from './bulk-rates.ts'
import { type SeedRateBody, seedRateBody } from './rates.ts'
import { nouns } from './nouns.ts'
import { type ResourceStore, storeOf } from './resource.ts'

type Section = keyof typeof nouns

// They are the names of the object: it has no others.
const sections = Object.keys(nouns) as readonly Section[]

/** How many elements of each section were created, updated and unchanged. */
export type SeedReport = Readonly<
  Record<
    Section,
    { readonly created: number; readonly updated: number; readonly unchanged: number }
  >
>

/**
 * The file cannot be applied, and nothing was written. `message` is one line that names the
 * element.
 */
export class SeedRefused extends Error {
  override readonly name = 'SeedRefused'
  /** One line per problem: `carriers[2].gateways[0].port: …`. */
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
type Writer = ResourceStore<z.ZodObject, z.ZodObject>
type Writers = Readonly<Record<Section, Writer>>

export interface SeedPorts {
  readonly store: Store
  /** Where opening balances are posted. */
  readonly ledger: LedgerPort
  /** Whether `RTPENGINE` names media relays. */
  readonly hasMediaRelay: boolean
  /** Whether webhooks may go to private networks. */
  readonly allowsPrivateTargets?: boolean
  readonly allowsPrivateCertificates?: boolean
  /** The addresses of this installation. */
  readonly ownPlaces: OwnNetwork
  /** Resolves names, for a bounded time; absent: names are not resolved. */
  readonly addressesOf?: (hosts: readonly string[]) => Promise<(host: string) => readonly string[]>
  /** Milliseconds UTC. */
  readonly now: number
}

/**
 * Applies a seed file in one transaction.
 *
 * @throws {SeedRefused} the file is not valid, or contradicts what is stored.
 */
export async function applySeed(text: string, ports: SeedPorts): Promise<SeedReport> {
  const { store, now } = ports
  const writers = writersOf(ports)
  const elements = checked(read(text), writers)
  // Hashing is slow by design: do it before taking the write lock.
  const logins: Element[] = []
  for (const body of elements.customers) logins.push(await loginOf(store, writers.customers, body))
  const scope = {
    tenantId: null,
    actor: 'seed',
    now,
    ...(await lookedUp(elements, writers, ports)),
  }
  // Large rate tables too are prepared now and only written under the lock. `checked` has validated
  // them.
  const putRates = manyRates(store, elements.rates as readonly unknown[] as readonly SeedRateBody[])
  const apply = async (section: Section): Promise<SeedReport[Section]> =>
    (section === 'rates' ? await refusedAt('rates', async () => putRates?.(scope)) : undefined) ??
    (await applied(
      { store, writer: writers[section], scope },
      section,
      section === 'customers' ? logins : elements[section].map((body) => ({ body })),
    ))
  return transaction(store, async () => {
    const report: [Section, SeedReport[Section]][] = []
    for (const section of sections) report.push([section, await apply(section)])
    return Object.fromEntries(report) as SeedReport
  })
}

/** DNS is asked before the transaction, about all destinations of the file at once. */
async function lookedUp(
  elements: Elements,
  writers: Writers,
  { addressesOf }: SeedPorts,
): Promise<Pick<RequestScope, 'addressesOf'>> {
  const uris = sections.flatMap((section) =>
    elements[section].flatMap((body) => writers[section].destinations(body)),
  )
  const names = [...new Set(uris.flatMap(namesOf))]
  if (addressesOf === undefined || names.length === 0) return {}
  const known = await addressesOf(names)
  return { addressesOf: (uri) => namesOf(uri).flatMap(known) }
}

function namesOf(uri: string): readonly string[] {
  const target = sipTarget(uri)
  return target === undefined ? [] : namesBehind(target)
}

/** An element with its password already hashed; the stored form has no password. */
interface Element {
  readonly body: Body
  readonly newHash?: string
}

async function loginOf(
  store: Store,
  customers: Writers['customers'],
  body: Body,
): Promise<Element> {
  const { password, ...rest } = body
  if (typeof password !== 'string') return { body }
  const stored = await storedHash(store, customers, body)
  if (stored !== undefined && isPasswordNow(password, stored)) return { body: rest }
  return { body, newHash: hashPasswordNow(password) }
}

async function storedHash(
  store: Store,
  customers: Writers['customers'],
  body: Body,
): Promise<string | undefined> {
  try {
    const id = await customers.identify(body)
    const query = store.db.selectFrom('customer').select('password_hash')
    const row = id === undefined ? undefined : await first(store, query.where('id', '=', id))
    return row?.password_hash ?? undefined
  } catch (error) {
    // The tenant of the row is in the same file.
    if (error instanceof ApiError) return undefined
    throw error
  }
}

interface Writing {
  readonly store: Store
  readonly writer: Writer
  readonly scope: RequestScope
}

async function applied(
  writing: Writing,
  section: Section,
  elements: readonly Element[],
): Promise<SeedReport[Section]> {
  const { writer, scope } = writing
  const paths = new Map<number, string>()
  const counts = { created: 0, updated: 0, unchanged: 0 }
  for (const [index, element] of elements.entries()) {
    const path = `${section}[${index}]`
    await refusedAt(path, async () => {
      const known = await writer.identify(element.body)
      const twin = known === undefined ? undefined : paths.get(known)
      if (twin !== undefined) throw new SeedRefused([`${path}: repeats ${twin}`])
      const body =
        section === 'rates' ? await wholeRate(writing, known, element.body) : element.body
      const whole = { ...element, body }
      const made = known === undefined ? 'created' : await replaced(writing, known, whole)
      counts[made] += 1
      paths.set(known ?? (await writer.insert(body, scope, element.newHash)), path)
    })
  }
  return counts
}

/** Fills in fields that the file does not name: from the stored rate, or with defaults. */
async function wholeRate(
  { writer, scope }: Writing,
  known: number | undefined,
  named: Body,
): Promise<Body> {
  const stored = known === undefined ? undefined : await writer.document(scope, known)
  return stored === undefined ? completed(writer.body, named) : patched(writer.body, stored, named)
}

/** Replaces the stored row with an element. Writes nothing when they are equal. */
async function replaced(
  { store, writer, scope }: Writing,
  id: number,
  { body, newHash }: Element,
): Promise<'updated' | 'unchanged'> {
  const shown = async () =>
    JSON.stringify({ ...(await writer.find(scope, id)), updated_at: undefined })
  const before = await shown()
  const isNewSecret = newHash !== undefined || (await writer.isNewSecret(id, body))
  try {
    await transaction(store, async () => {
      await writer.replace(id, body, scope, newHash)
      if (!isNewSecret && (await shown()) === before) throw same
    })
  } catch (error) {
    if (error === same) return 'unchanged'
    throw error
  }
  return 'updated'
}

/** Thrown inside the transaction to roll it back. */
const same = new Error('nothing has changed')

/** Adds the element's name to a store's errors. */
async function refusedAt<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const details = error.details ?? [{ path: '', message: error.message }]
    throw new SeedRefused(details.map((detail) => lineOf(path, detail)))
  }
}

function read(text: string): Readonly<Record<Section, readonly unknown[]>> {
  // Some editors write a byte order mark.
  const parsed = parseJson(text.replace(/^\uFEFF/, ''), Infinity)
  if (parsed.kind === 'problem') throw new SeedRefused([lineOf('', placed(parsed.problem, text))])
  const file = seedShape.safeParse(parsed.value)
  if (!file.success)
    throw new SeedRefused(problemsOf(file.error, seedShape).map((problem) => lineOf('', problem)))
  const count = sections.reduce((sum, section) => sum + file.data[section].length, 0)
  if (count > maxElements) throw new SeedRefused([`the file has more than ${maxElements} elements`])
  return file.data
}

/** Reports invalid JSON with its line, as editors count them. */
function placed(problem: RequestProblem, text: string): RequestProblem {
  if (problem.path !== '' || problem.message !== notJson) return problem
  const { line, column, message } = jsonProblem(text)
  return { path: '', message: `${notJson}: line ${line}, column ${column} ${message}` }
}

/** Returns all problems of the file that can be found without the database. */
function checked(
  elements: Readonly<Record<Section, readonly unknown[]>>,
  writers: Writers,
): Elements {
  const problems: string[] = []
  const bodies = bySection((section) => {
    const schema = section === 'rates' ? seedRateBody : writers[section].body
    return elements[section].flatMap((element, index) => {
      const parsed = schema.safeParse(withKnownTenant(schema, element))
      if (parsed.success) return [parsed.data]
      for (const problem of slipsFirst(problemsOf(parsed.error, schema)))
        problems.push(lineOf(`${section}[${index}]`, problem))
      return []
    })
  })
  if (problems.length > 0) throw new SeedRefused(problems)
  return bodies
}

/** A missing field is often a misspelled one: the first problem is shown. */
const slipsFirst = (problems: readonly RequestProblem[]): readonly RequestProblem[] =>
  problems.toSorted((one, other) => Number(isSlip(other)) - Number(isSlip(one)))

const isSlip = ({ message }: RequestProblem): boolean => message.startsWith(unknownField)

/** `nodes.0.host` of `dispatcher[1]` → `dispatcher[1].nodes[0].host: …` */
function lineOf(element: string, { path, message }: RequestProblem): string {
  const inner = path
    .split('.')
    .filter((part) => part !== '')
    .map((part) => (/^\d+$/.test(part) ? `[${part}]` : `.${part}`))
    .join('')
  const place = element + (element === '' ? inner.replace(/^\./, '') : inner)
  return `${place === '' ? 'the file' : place}: ${message}`
}

const seedShape = z.strictObject(bySection(() => z.array(z.unknown()).default([])))

function writersOf({ ownPlaces: own, ...ports }: SeedPorts): Writers {
  const { store, ledger, hasMediaRelay } = ports
  const { allowsPrivateTargets = false, allowsPrivateCertificates = false } = ports
  const allowed = { allowsPrivateTargets, allowsPrivateCertificates }
  const reserved = { networks: [], own }
  const deps = { store, ledger, hasMediaRelay, ...allowed, reserved }
  return bySection((section) => storeOf<z.ZodObject, z.ZodObject>(nouns[section], deps))
}

function bySection<T>(make: (section: Section) => T): Record<Section, T> {
  return Object.fromEntries(sections.map((section) => [section, make(section)])) as Record<
    Section,
    T
  >
}

interface JsonProblem {
  /** Starts at 1. */
  readonly line: number
  readonly column: number
  readonly message: string
}

/**
 * Returns the first problem of a text that `JSON.parse` rejects (RFC 8259), which does not always
 * name it. Bounded: reads each character once.
 */
function jsonProblem(text: string): JsonProblem {
  const { at, message } = firstProblem(text)
  const before = text.slice(0, at)
  const line = before.split('\n').length
  return { line, column: at - (before.lastIndexOf('\n') + 1) + 1, message }
}

const space = /[ \t\n\r]*/y
const scalar = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])/y
// eslint-disable-next-line no-control-regex -- these may not stand in a string
const string = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/y

/** The next token that the grammar allows. */
type ExpectedToken =
  | 'a value'
  | 'a value or ]'
  | 'a name in quotes'
  | 'a name in quotes or }'
  | ':'
  | ', or ]'
  | ', or }'

function firstProblem(text: string): { readonly at: number; readonly message: string } {
  const open: ('[' | '{')[] = []
  let at = 0
  let expected: ExpectedToken = 'a value'
  const took = (pattern: RegExp): boolean => {
    pattern.lastIndex = at
    const found = pattern.test(text)
    if (found) at = pattern.lastIndex
    return found
  }
  const afterValue = (): ExpectedToken => (open.at(-1) === '[' ? ', or ]' : ', or }')
  for (;;) {
    took(space)
    const character = text[at]
    if (character === undefined) return { at, message: `ends where ${expected} is expected` }
    const closing = open.at(-1) === '[' ? ']' : '}'
    if (character === closing && expected.endsWith(closing)) {
      at += 1
      open.pop()
      expected = afterValue()
    } else if (expected === ':' && character === ':') {
      at += 1
      expected = 'a value'
    } else if (expected.startsWith(',') && character === ',') {
      at += 1
      expected = open.at(-1) === '[' ? 'a value' : 'a name in quotes'
    } else if (expected.startsWith('a name') && took(string)) {
      expected = ':'
    } else if (expected.startsWith('a value') && (character === '[' || character === '{')) {
      at += 1
      open.push(character)
      expected = character === '[' ? 'a value or ]' : 'a name in quotes or }'
    } else if (expected.startsWith('a value') && (took(string) || took(scalar))) {
      expected = afterValue()
    } else return { at, message: problemAt(text, at, expected) }
    if (open.length > 0) continue
    took(space)
    return { at, message: 'has extra characters after its end' }
  }
}

function problemAt(text: string, at: number, expected: ExpectedToken): string {
  const character = text[at] ?? ''
  if (character === '"') {
    const end = /[\n\r]/.exec(text.slice(at, at + 2_000))
    return end === null
      ? 'has a text that is not well formed'
      : 'has a text that does not end in its line'
  }
  return `has ${JSON.stringify(character)} where ${expected} is expected`
}
