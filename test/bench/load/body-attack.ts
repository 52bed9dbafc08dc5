/**
 * The bodies that a tenant may send to each route that takes a body, and what becomes of calls
 * meanwhile.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { TollgateProcess } from '../../support/tollgate-process.ts'
import { percentile } from './figures.ts'
import { caller, oneCustomer } from './one-customer.ts'
import { SetupProbe } from './setup-probe.ts'
import { startNode } from './sipp-load.ts'

interface BodyOptions {
  /** The length of each row, and of the quiet time before it. */
  readonly seconds: number
  /** Calls a second. */
  readonly rate: number
  readonly only: string
}

/** A route, and the bodies that are sent to it in turn. Each character is a byte. */
interface BodyRow {
  readonly method: string
  readonly path: string
  readonly type: string
  readonly bodies: readonly string[]
}

const KEYS = 3
/** The number of turns of quiet and flood in a row. */
const TURNS = 3
/**
 * A call may take so many times as long as in the quiet time: SPECIFICATION.md does not say it, a
 * caller would hear it.
 */
const MOST_TIMES = 3

/** Prints a row for each route; true: every one held. */
export async function attackByBodies({ seconds, rate, only }: BodyOptions): Promise<boolean> {
  const node = await startNode()
  const tollgate = await TollgateProcess.start(
    { ...oneCustomer([node.port]), tenants: tenants.map((slug) => ({ slug })) },
    { LOG_LEVEL: 'warn' },
  )
  const probe = await SetupProbe.open(caller)
  let isHeld = true
  try {
    const rows = (await rowsOf(tollgate)).filter(({ path }) => path.includes(only))
    await callsFor(probe, tollgate.sipPort, rate, seconds)
    for (const [index, row] of rows.entries()) {
      const tokens = await keysOf(tollgate, tenants[index] ?? '')
      const [quiet, beside]: [number[], number[]] = [[], []]
      const statuses: Record<string, number> = {}
      // The turns alternate: other work of the machine comes and goes.
      for (let turn = 0; turn < TURNS; turn += 1) {
        quiet.push(...(await callsFor(probe, tollgate.sipPort, rate, seconds / TURNS)))
        const flood = fork(join(import.meta.dirname, 'body-flood.mjs'))
        flood.send({ port: portOf(tollgate, row), tokens, ...row })
        await once(flood, 'message')
        beside.push(...(await callsFor(probe, tollgate.sipPort, rate, seconds / TURNS)))
        flood.send('stop')
        const [counts] = (await once(flood, 'message')) as [Record<string, number>]
        for (const [status, count] of Object.entries(counts))
          statuses[status] = (statuses[status] ?? 0) + count
      }
      const [usual, now] = [percentile(quiet, 0.99), percentile(beside, 0.99)]
      const times = now / usual
      isHeld &&= times <= MOST_TIMES
      console.log(
        `  ${times <= MOST_TIMES ? 'held  ' : 'BROKEN'}  ${row.method.padEnd(6)} ${row.path.padEnd(52)} ` +
          `set-up p50 ${percentile(beside, 0.5).toFixed(1)}, p99 ${now.toFixed(1)} ms, ` +
          `${times.toFixed(1)} × quiet (${usual.toFixed(1)}); ${textOf(statuses)}`,
      )
    }
  } finally {
    probe.close()
    await tollgate.stop()
    await node.stop()
  }
  return isHeld
}

const textOf = (statuses: Readonly<Record<string, number>>): string =>
  Object.entries(statuses)
    .map(([status, count]) => `${count} × ${status}`)
    .join(', ')

/** A tenant for each row: no row uses up what another may take. */
const tenants = Array.from({ length: 200 }, (_, index) => `attacker-${index}`)

async function keysOf(tollgate: TollgateProcess, tenant: string): Promise<readonly string[]> {
  const words = ['--scopes', '*', '--tenant', tenant]
  const tokens: string[] = []
  for (let index = 0; index < KEYS; index += 1)
    tokens.push(await tollgate.createKey('--name', `${tenant} ${index}`, ...words))
  await provisionPlan(tollgate, tokens[0] ?? '')
  return tokens
}

const portOf = ({ apiPort, edgePort }: TollgateProcess, { path }: BodyRow): number =>
  path.startsWith('/api/client/') ? edgePort : apiPort

async function callsFor(
  probe: SetupProbe,
  port: number,
  rate: number,
  seconds: number,
): Promise<readonly number[]> {
  const calls: Promise<number>[] = []
  for (let call = 0; call < rate * seconds; call += 1) {
    calls.push(probe.place(port).then(({ answeredMs }) => answeredMs))
    await pause(1_000 / rate)
  }
  return Promise.all(calls)
}

async function provisionPlan({ apiPort }: TollgateProcess, token: string): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${apiPort}/api/v1/rate-plans`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ name: 'own', currency: 'USD' }),
  })
  if (answer.status !== 201) throw new Error(`no plan: ${await answer.text()}`)
}

type Json = Readonly<Record<string, unknown>>

/** Every route of the OpenAPI document that takes a body, but those of other charging systems. */
async function rowsOf({ apiPort }: TollgateProcess): Promise<readonly BodyRow[]> {
  const answer = await fetch(`http://127.0.0.1:${apiPort}/openapi.json`)
  const document = (await answer.json()) as Json
  const paths = document['paths'] as Record<string, Record<string, Json>>
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { requestBody }]) => {
      const content = (requestBody as Json | undefined)?.['content'] as
        Record<string, { readonly schema?: Json; readonly example?: unknown }> | undefined
      const [type, body] = Object.entries(content ?? {})[0] ?? []
      if (type === undefined || path.startsWith('/api/ocs/')) return []
      return [
        {
          method: method.toUpperCase(),
          path: path.replaceAll(/\{\w+\}/g, '1') + (type === 'text/csv' ? '?rate_plan=own' : ''),
          type,
          bodies:
            type === 'text/csv'
              ? tables()
              : documents(propertiesOf(body?.schema, document), body?.example ?? {}, sizeOf(path)),
        },
      ]
    }),
  )
}

/** As `control/http/body.ts` has them. */
const sizeOf = (path: string): number => {
  if (/\/auth\/(?:login|session)$/.test(path)) return 4_000
  if (path.endsWith('/payments/webhook')) return 260_000
  if (path.startsWith('/api/client/')) return 16_000
  return 65_000
}

function propertiesOf(schema: Json | undefined, document: Json): Readonly<Record<string, Json>> {
  if (schema === undefined) return {}
  const name = /^#\/components\/schemas\/(.*)$/.exec(String(schema['$ref']))?.[1]
  const schemas = (document['components'] as Json)['schemas'] as Record<string, Json>
  if (name !== undefined) return propertiesOf(schemas[name], document)
  return (schema['properties'] as Record<string, Json> | undefined) ?? {}
}

/** Bodies of JSON, as large as they may be. */
function documents(
  properties: Readonly<Record<string, Json>>,
  example: unknown,
  size: number,
): readonly string[] {
  const filled = (start: string, unit: (index: number) => string, end: string): string => {
    const parts: string[] = []
    for (let length = start.length + end.length; ;) {
      const part = unit(parts.length)
      length += part.length + 1
      if (length > size) return start + parts.join() + end
      parts.push(part)
    }
  }
  const lists = Object.entries(properties).filter(([, schema]) =>
    JSON.stringify(schema).includes('"array"'),
  )
  return [
    filled('{', (index) => `"n${index}":0`, '}'),
    filled('{"\\u0061":[', () => '{}', ']}'),
    filled('{"a":', () => '"\\u00e9"', '}').replaceAll('","', ''),
    `{"a":${'['.repeat(30)}${filled('', () => '1', '')}${']'.repeat(30)}}`,
    ...lists.flatMap(([name]) =>
      ['1', '{}', '"1"', '"x y"', '{"host":"10.0.0.1","match":"("}'].map((unit) =>
        filled(`{${JSON.stringify(name)}:[`, () => unit, ']}'),
      ),
    ),
    JSON.stringify(example),
  ]
}

/** Tables of rates: hostile ones, and the largest that a tenant may have. */
function tables(): readonly string[] {
  const header = 'prefix,rate_per_minute'
  const lines = (count: number, line: (index: number) => string): string =>
    Array.from({ length: count }, (_, index) => line(index)).join('')
  return [
    `${lines(100_000, (index) => `c${index},`)}x\n1\n`,
    ','.repeat(12_000_000),
    '\n'.repeat(16_000_000),
    `${header}\n"${'x'.repeat(16_000_000)}`,
    `${header}\n${'x\n'.repeat(1_000_000)}`,
    `${header},rate_plan\n${lines(100_000, (index) => `${index},1,plan ${index}\n`)}`,
    `${header}\n${lines(90_000, (index) => `${index},0.01\n`)}`,
    `${header},effective_from\n${lines(100_000, (index) => `49,0.01,${new Date(index * 60_000).toISOString()}\n`)}`,
    `${header}\n49,0.01\n`,
  ]
}
