/**
 * What a customer's edit costs three nodes that share a large PostgreSQL database: their CPU, and the calls beside it.
 * Quiet seconds and seconds with an edit each take turns.
 */
import { execFile } from 'node:child_process'
import { setTimeout as later } from 'node:timers/promises'
import { promisify } from 'node:util'
import { openCluster, whyNoCluster, type Cluster } from '../support/cluster/cluster.ts'
import { API_PORT } from '../support/cluster/cluster-node.ts'
import type { Machine } from '../support/cluster/network.ts'
import { CALLEE_PORT, ClusterLoad, type SeenCall } from './load/cluster-load.ts'
import { reportRows } from './load/cluster-report.ts'
import { cpuMicros } from './load/process-cpu.ts'

export const describe =
  'what a PATCH costs three nodes beside calls; as root; arguments: customers=20000 extensions=100000 rate=60 turns=3 seconds=10 seed=1'

const WARM_UP_MS = 15_000
const SETTLING_MS = 20_000
const EDIT_MS = 1_000
const callers = Array.from({ length: 50 }, (_, index) => `1555000${1_000 + index}`)

export async function run(words: readonly string[] = []): Promise<void> {
  const missing = whyNoCluster()
  if (missing !== undefined) return console.log(`  not run: ${missing}`)
  const given = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const number = (name: string, unlessGiven: number) => Number(given.get(name) ?? unlessGiven)
  const [rate, seconds] = [number('rate', 60), number('seconds', 10)]
  const cluster = await openCluster({ nodes: 3, seedFor })
  try {
    await fill(cluster, number('customers', 20_000), number('extensions', 100_000))
    const lengths = { longestRingingMs: 50, longestTalkMs: 1_000 }
    const load = await ClusterLoad.start(cluster, { seed: number('seed', 1), callers, ...lengths })
    await cluster.serve()
    load.rate(rate)
    await later(WARM_UP_MS)
    const windows: Window[] = []
    for (let turn = 0; turn < number('turns', 3); turn += 1)
      for (const isEdited of [false, true]) windows.push(await watch(cluster, seconds, isEdited))
    await load.finish(SETTLING_MS)
    await load.end()
    reportRows(rowsOf(windows, load.seen()))
  } finally {
    await cluster.close()
  }
}

const seedFor = (load: Machine): object => ({
  tenants: [{ slug: 'acme', domains: ['acme.example'] }],
  rate_plans: [{ name: 'load', currency: 'USD' }],
  rates: [{ rate_plan: 'load', prefix: '1', rate_per_minute: '0.60' }],
  customers: callers.map((caller) => ({
    name: caller,
    rate_plan: 'load',
    numbers: [caller],
    balance: '1000.00',
  })),
  extensions: [{ tenant: 'acme', extension: '99', password: 'long enough', display_name: 'First' }],
  dispatcher: [
    {
      endpoint_name: 'load',
      set_id: 1,
      algorithm: 4,
      nodes: [{ host: load.address, internal_port: CALLEE_PORT }],
    },
  ],
})

/** Rows beside those that the calls use. */
async function fill(cluster: Cluster, customers: number, extensions: number): Promise<void> {
  const copied = async (
    table: string,
    count: number,
    changed: Readonly<Record<string, string>>,
  ) => {
    const columns = await cluster.statements
      .prepare<{ readonly name: string }>(
        `SELECT column_name AS name FROM information_schema.columns
         WHERE table_name = $1 AND column_name <> 'id'`,
      )
      .all([table])
    const names = columns.map(({ name }) => name)
    const values = names.map((name) => changed[name] ?? `first.${name}`)
    await cluster.statements
      .prepare(
        `INSERT INTO ${table} (${names.join(', ')}) SELECT ${values.join(', ')}
         FROM (SELECT * FROM ${table} ORDER BY id LIMIT 1) AS first, generate_series(1, ${count}) AS n`,
      )
      .run([])
  }
  await copied('customer', customers, { name: `'customer ' || n`, email: 'NULL' })
  await copied('extension', extensions, { extension: '(100000 + n)::text' })
  const others = 'FROM customer WHERE id NOT IN (SELECT customer_id FROM wallet)'
  await cluster.statements
    .prepare(
      `INSERT INTO wallet (customer_id, currency, balance_micros, updated_at) SELECT id, 'USD', 0, 0 ${others}`,
    )
    .run([])
  await cluster.statements.prepare('ANALYZE').run([])
}

interface Window {
  readonly isEdited: boolean
  readonly from: number
  readonly to: number
  readonly edits: number
  /** Of all nodes. */
  readonly cpuMicros: number
}

async function watch(cluster: Cluster, seconds: number, isEdited: boolean): Promise<Window> {
  const pids = cluster.nodes.map(({ pid }) => pid)
  const [from, cpuBefore] = [Date.now(), cpuMicros(pids)]
  let edits = 0
  for (let second = 0; second < seconds; second += 1) {
    if (isEdited) await edit(cluster, edits++)
    await later(from + (second + 1) * EDIT_MS - Date.now())
  }
  return { isEdited, from, to: Date.now(), edits, cpuMicros: cpuMicros(pids) - cpuBefore }
}

/** From the machine of the callers: this process is in another network. */
async function edit({ nodes, load, token }: Cluster, index: number): Promise<void> {
  const [path, body] =
    index % 2 === 0
      ? [`customers/${100 + index}`, { max_cps: index + 1 }]
      : [`pbx/extensions/${100 + index}`, { display_name: `Edit ${index}` }]
  const [file, ...words] = load.command(
    'curl',
    '--silent',
    '--show-error',
    '--fail-with-body',
    '--request',
    'PATCH',
    '--header',
    `Authorization: Bearer ${token}`,
    '--json',
    JSON.stringify(body),
    `http://${nodes[0]?.machine.address}:${API_PORT}/api/v1/${path}`,
  )
  await promisify(execFile)(file, words)
}

function rowsOf(windows: readonly Window[], seen: readonly SeenCall[]) {
  const sum = (isEdited: boolean, of: (window: Window) => number): number =>
    windows
      .filter((window) => window.isEdited === isEdited)
      .reduce((all, each) => all + of(each), 0)
  const edits = sum(true, (window) => window.edits)
  const more = sum(true, (window) => window.cpuMicros) - sum(false, (window) => window.cpuMicros)
  return [
    [
      'CPU of the three nodes for an edit, ms',
      (more / 1_000 / Math.max(edits, 1)).toFixed(1),
      true,
    ] as const,
    ...[false, true].map((isEdited) => {
      const calls = seen.filter(({ placedAt }) =>
        windows.some(
          (each) => each.isEdited === isEdited && placedAt >= each.from && placedAt < each.to,
        ),
      )
      const answered = calls.filter(({ what }) => what === 'answered')
      const took = answered.map(({ tookMs }) => tookMs).toSorted((one, other) => one - other)
      const at = (part: number): string => (took[Math.floor(took.length * part)] ?? 0).toFixed(1)
      const lost = calls.length - answered.length
      return [
        `${isEdited ? 'with edits' : 'quiet'}: calls, not answered, INVITE to 200 p50 and p99`,
        `${calls.length}, ${lost}, ${at(0.5)} and ${at(0.99)} ms`,
        lost === 0,
      ] as const
    }),
  ]
}
