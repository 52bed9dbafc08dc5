/** Findings in wrong passwords of phones: those of extensions are guessed. */
import { plural, quoted } from '../../http/clean-text.ts'
import { sql } from 'kysely'
import { DAY_MS, HOUR_MS } from '../../../schema/clock.ts'
import { sourceKey } from '../../../schema/net/ip-address.ts'
import { all } from '../../../schema/sql/query.ts'
import { grouped } from '../../http/rows.ts'
import type { AnomalyDeps, Finding, Span } from './finding.ts'

/** A person mistypes, a phone has the password of yesterday: fewer say nothing. */
const FEW = 10
const PAST_DAYS = 14
/** Only the most frequent are read. */
const MAX_PAIRS = 5_000
const NAMED = 5
const MAX_GUESSED = 500
/** A phone with a typo tries again and again, until its address is banned. */
const FEW_OF_ONE = 50
/** Stands for the name of an extension. */
const NONE = ''

interface Pair {
  readonly tenant_id: number
  /** 0: there is no such extension. */
  readonly extension_id: number
  readonly extension: string | null
  readonly domain: string | null
  readonly source: string
  readonly failures: number
  readonly first_at: number
  readonly last_at: number
}

/**
 * One finding for each tenant. Its statements add up every hour of an attack: they run inside
 * `readApart`.
 */
export async function findGuessing(deps: AnomalyDeps, span: Span): Promise<readonly Finding[]> {
  const counted = grouped(await pairsIn(deps, span), ({ tenant_id }) => tenant_id)
  const many = [...counted].filter(([, pairs]) => sumOf(pairs) >= FEW)
  if (many.length === 0) return []
  const usual = await usualOf(deps, span)
  const findings: Finding[] = []
  for (const [tenantId, pairs] of many) {
    const mean = usual.get(tenantId) ?? 0
    if (sumOf(pairs) >= 3 * mean) findings.push(await guessingFinding(deps, pairs, mean))
  }
  return findings
}

const sumOf = (pairs: readonly Pair[]): number =>
  pairs.reduce((sum, { failures }) => sum + failures, 0)

async function pairsIn(
  { store, tenantId, domain }: AnomalyDeps,
  { from, before }: Span,
): Promise<readonly Pair[]> {
  let query = store.db
    .selectFrom('wrong_password as wrong')
    .leftJoin('extension', 'extension.id', 'wrong.extension_id')
    .where('wrong.hour', '>=', Math.floor(from / HOUR_MS))
    .where('wrong.first_at', '<', before)
    .where('wrong.last_at', '>=', from)
  if (tenantId !== null) query = query.where('wrong.tenant_id', '=', tenantId)
  if (domain !== null) query = query.where('extension.domain', '=', domain)
  return all(
    store,
    query
      .select((row) => [
        'wrong.tenant_id',
        'wrong.extension_id',
        'wrong.source',
        'extension.extension',
        'extension.domain',
        sql<number>`CAST(SUM(wrong.failures) AS INTEGER)`.as('failures'),
        row.fn.min('wrong.first_at').as('first_at'),
        row.fn.max('wrong.last_at').as('last_at'),
      ])
      .groupBy([
        'wrong.tenant_id',
        'wrong.extension_id',
        'wrong.source',
        'extension.extension',
        'extension.domain',
      ])
      .orderBy('failures', 'desc')
      .limit(MAX_PAIRS),
  )
}

/** The mean number of failures of each tenant in such a period, over the days before. */
async function usualOf(
  { store, tenantId }: AnomalyDeps,
  { from, before }: Span,
): Promise<ReadonlyMap<number, number>> {
  const start = Math.floor((from - PAST_DAYS * DAY_MS) / HOUR_MS)
  const query = store.db
    .selectFrom('wrong_password')
    .select(['tenant_id', sql<number>`CAST(SUM(failures) AS INTEGER)`.as('failures')])
    .where('hour', '>=', start)
    .where('hour', '<', Math.floor(from / HOUR_MS))
    .$if(tenantId !== null, (own) => own.where('tenant_id', '=', tenantId ?? 0))
    .groupBy('tenant_id')
  const meanOf = (failures: number): number =>
    Math.round((failures * (before - from)) / (PAST_DAYS * DAY_MS))
  const rows = await all(store, query)
  return new Map(rows.map(({ tenant_id, failures }) => [tenant_id, meanOf(failures)]))
}

async function guessingFinding(
  deps: AnomalyDeps,
  pairs: readonly Pair[],
  usual: number,
): Promise<Finding> {
  const extensions = countsBy(pairs, nameOf)
  const sources = countsBy(
    pairs.filter(({ source }) => source !== ''),
    ({ source }) => source,
  )
  const addresses = [...sources.keys()]
  const count = sumOf(pairs)
  const firstAt = Math.min(...pairs.map(({ first_at }) => first_at))
  const entered = await enteredBy(deps, pairs, firstAt)
  const hasEntered = entered.length > 0
  // Who has guessed right has registered: that makes no address known.
  const known = hasEntered ? 0 : await knownAmong(deps, pairs[0]?.tenant_id ?? 0, addresses)
  const [worst = '', ...otherNames] = [...extensions.keys()]
  const [source] = addresses
  const isOneSource = sources.size === 1 && extensions.size === 1
  const isOfKnown = sources.size > 0 && known === sources.size
  const isLikelyTypo = isOfKnown || (isOneSource && count < FEW_OF_ONE)
  const what = [
    `${plural(count, 'wrong password')} of phones since ${new Date(firstAt).toISOString()};`,
    `usually there are ${usual === 0 ? 'none' : usual} in such a time.`,
    `They were for ${listing(extensions, 'extension', 'extensions')},`,
    `and came from ${listing(sources, 'address', 'addresses')}.`,
    hasEntered
      ? `REGISTERED from there since: ${entered.map(quoted).join(', ')}.`
      : 'No phone has registered with them from there since.',
  ].join(' ')
  const number = pairs.find(({ extension }) => extension !== null)?.extension
  return {
    kind: 'registration',
    ...(pairs[0] && { ownerId: pairs[0].tenant_id }),
    severity: hasEntered ? (isLikelyTypo ? 'high' : 'critical') : isOneSource ? 'medium' : 'high',
    subject:
      otherNames.length === 0
        ? `extension ${shown(worst)}`
        : `extension ${shown(worst)} and ${plural(otherNames.length, 'other one')}`,
    what,
    firstAt,
    lastAt: Math.max(...pairs.map(({ last_at }) => last_at)),
    figures: {
      wrong_passwords: count,
      usual,
      extensions: extensions.size,
      addresses: sources.size,
      known_addresses: known,
      likely_typo: isLikelyTypo ? 1 : 0,
    },
    evidence: addresses.slice(0, NAMED),
    advice: adviceOf(hasEntered, isLikelyTypo),
    remedy: {
      kind: 'sip_ban',
      ids: addresses.slice(0, NAMED),
      fits: (after) => after === 'banned',
    },
    // Whether calls are made with it.
    next: {
      tool: 'search_cdrs',
      arguments: {
        ...(number != null && { caller: number }),
        start: new Date(firstAt).toISOString(),
        format: 'brief',
      },
    },
    // A known source, or one that has registered after a typo, should not be banned for it.
    firstStep:
      source === undefined || deps.tenantId !== null || isOfKnown || (isLikelyTypo && hasEntered)
        ? null
        : {
            tool: 'ban_address',
            arguments: {
              address: source,
              duration: 3_600,
              reason: 'it guesses passwords of phones',
            },
          },
  }
}

/** @param isLikelyTypo one phone, or only addresses that are known. */
function adviceOf(hasEntered: boolean, isLikelyTypo: boolean): string {
  if (isLikelyTypo)
    return hasEntered
      ? 'The usual cause is a typo in a phone, which somebody has corrected. If nobody has, ' +
          'change the password of the extension that has registered from there, then ban the ' +
          'address.'
      : 'The usual cause is a typo in a phone: correct the password there. A ban of its ' +
          'address is lifted under Bans.'
  return hasEntered
    ? 'Change the password of the extension that has registered from there, then ban the addresses.'
    : 'Ban the addresses, and see that the passwords are long. If it was a typo in a phone, ' +
        'correct it there; a ban of its address is lifted under Bans.'
}

const nameOf = ({ extension, domain }: Pair): string =>
  extension === null ? NONE : `${extension}@${domain ?? ''}`

const shown = (name: string): string => (name === NONE ? 'that does not exist' : quoted(name))

/** The most frequent first. */
function countsBy(
  pairs: readonly Pair[],
  name: (pair: Pair) => string,
): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const pair of pairs) counts.set(name(pair), (counts.get(name(pair)) ?? 0) + pair.failures)
  return new Map([...counts].toSorted(([, one], [, other]) => other - one))
}

/** `extension "2001@acme.example"`, `2 addresses: "192.0.2.2" (26), "192.0.2.1" (12)` */
function listing(counts: ReadonlyMap<string, number>, noun: string, nouns: string): string {
  const [only = ''] = counts.keys()
  if (counts.size === 1) return `${noun} ${shown(only)}`
  const named = [...counts].slice(0, NAMED).map(([name, count]) => `${shown(name)} (${count})`)
  const more = counts.size > NAMED ? ', …' : ''
  return `${counts.size} ${nouns}: ${named.join(', ')}${more}`
}

/**
 * How many of these are addresses of phones, nodes or carriers; those of others are told to the
 * platform alone.
 */
async function knownAmong(
  { store, tenantId }: AnomalyDeps,
  ownerId: number,
  addresses: readonly string[],
): Promise<number> {
  const some = addresses.slice(0, MAX_GUESSED)
  if (some.length === 0) return 0
  const { db } = store
  const isOwn = tenantId !== null
  const phones = db
    .selectFrom('binding')
    .innerJoin('extension', 'extension.id', 'binding.extension_id')
    .where('extension.tenant_id', '=', ownerId)
    .where('source_address', 'in', some)
    .select('source_address as address')
  const gateways = db
    .selectFrom('carrier_gateway')
    .innerJoin('carrier', 'carrier.id', 'carrier_gateway.carrier_id')
    .where('carrier_gateway.host', 'in', some)
    .$if(isOwn, (own) => own.where('carrier.tenant_id', '=', ownerId))
    .select('carrier_gateway.host as address')
  const nodes = db
    .selectFrom('dispatcher_node')
    .innerJoin('dispatcher_set', 'dispatcher_set.id', 'dispatcher_node.dispatcher_set_id')
    .where('dispatcher_node.host', 'in', some)
    .$if(isOwn, (own) => own.where('dispatcher_set.tenant_id', '=', ownerId))
    .select('dispatcher_node.host as address')
  const rows = await all(store, phones.union(gateways).union(nodes))
  return new Set(rows.map(({ address }) => address)).size
}

/** Extensions whose phones have registered from such a source since. */
async function enteredBy(
  { store }: AnomalyDeps,
  pairs: readonly Pair[],
  since: number,
): Promise<readonly string[]> {
  const guessed = new Set(
    pairs.filter(({ extension }) => extension !== null).map(({ extension_id: id }) => id),
  )
  if (guessed.size === 0) return []
  const bindings = await all(
    store,
    store.db
      .selectFrom('binding')
      .select(['extension_id', 'source_address'])
      .where('extension_id', 'in', [...guessed].slice(0, MAX_GUESSED))
      .where('registered_at', '>=', since),
  )
  const right = new Set(
    bindings.map(({ extension_id: id, source_address }) => `${id} ${sourceKey(source_address)}`),
  )
  const entered = pairs.filter(({ extension_id: id, source }) => right.has(`${id} ${source}`))
  return [...new Set(entered.map(nameOf))].slice(0, NAMED)
}
