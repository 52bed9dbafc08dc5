/**
 * An installation that has been used for three days, and the console of it in a browser: customers,
 * carriers of which one is refused, extensions, 2,000 calls with failures, findings, changes of a
 * second operator, a key, and a day about which a customer complains.
 */
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import type { Browser, Page } from 'playwright-core'
import { execute } from '../../schema/sql/query.ts'
import { openBrowser, openConsole, postFrom, type ConsolePage } from './console-browser.ts'
import { emptyStore } from './empty-store.ts'
import { seededRandom } from './seeded-random.ts'
import { SipPeer } from './sip-peer.ts'
import { aRecord, DAY, type StoredRecord } from './summed-calls.ts'
import { TollgateProcess } from './tollgate-process.ts'
import { eventually } from './waiting.ts'

const admin = { username: 'admin', password: 'correct horse battery' }
const other = { username: 'petra', password: 'correct second battery' }

const CALLS = 2_000
const HOUR = 3_600_000

/** It waits for the findings, too. */
const START_MS = 170_000

type Session = Awaited<ReturnType<ReturnType<Page['context']>['storageState']>>

interface LivedIn {
  readonly browser: Browser
  readonly tollgate: TollgateProcess
  /** Of both administrators: one of them alone would ask for more in a minute than a person may. */
  readonly sessions: readonly Session[]
  readonly records: readonly StoredRecord[]
  /** Ids by name. */
  readonly customers: Ids
  /** The midnight (UTC) with which this day began, when the calls were made. */
  readonly today: number
}

/** One installation and one browser, for the tests of a file. */
export function shareLivedIn() {
  const ends: (() => void | Promise<void>)[] = []
  let shared: LivedIn | undefined
  beforeAll(async () => {
    shared = await startLivedIn((work) => void ends.push(work))
  }, START_MS)
  afterAll(async () => {
    for (const end of ends.toReversed()) await end()
  })
  let opened = 0
  const started = (): LivedIn => {
    if (shared === undefined) throw new Error('the installation has not started')
    return shared
  }
  return {
    livedIn: started,
    /** A page at the start of the console, of one administrator and the other in turn. */
    atStart: async (): Promise<ConsolePage> => {
      const { browser, tollgate, sessions } = started()
      const storageState = sessions[opened++ % sessions.length]
      if (storageState === undefined) throw new Error('nobody has signed in')
      const options = { storageState, path: '/console', timezoneId: 'UTC' }
      const shown = await openConsole(browser, tollgate, options)
      onTestFinished(() => shown.page.context().close())
      await shown.page.getByRole('button', { name: 'Account' }).waitFor()
      return shown
    },
  }
}

async function startLivedIn(atEnd: (work: () => void | Promise<void>) => void): Promise<LivedIn> {
  const browser = await openBrowser()
  atEnd(() => browser.close())
  const places = { address: '127.0.0.1', advertisedHost: '127.0.0.1', advertisedPort: 9 }
  const listener = { protocol: 'udp' as const, port: 9, ...places }
  const nodes = [await SipPeer.openPatient(listener), await SipPeer.openPatient(listener)]
  for (const node of nodes) node.always('OPTIONS', 200, { tag: 'probed' })
  atEnd(() => nodes.forEach((node) => node.close()))
  const environment = { ADMIN_PASSWORD: admin.password, DRAIN_SECONDS: '0' }
  const tollgate = await TollgateProcess.start(seedFor(nodes.map(({ port }) => port)), environment)
  atEnd(() => tollgate.stop())
  listener.port = tollgate.sipPort
  await tollgate.terminate()
  const present = Date.now()
  const today = present - (present % DAY)
  const customers = idsOf(tollgate)
  const records = callsOfThreeDays(today, present, customers)
  await storeIn(tollgate.databasePath, records)
  await tollgate.createKey('--name', 'billing export', '--scopes', 'cdrs:read')
  await tollgate.restart()
  const { page, signIn } = await openConsole(browser, tollgate, { timezoneId: 'UTC' })
  await signIn(admin.username, admin.password)
  const trunks: SipPeer[] = []
  while (trunks.length < 3) trunks.push(await SipPeer.openPatient(tollgate.listener()))
  atEnd(() => trunks.forEach((trunk) => trunk.close()))
  for (const trunk of trunks) {
    trunk.always('OPTIONS', 200, { tag: 'probed' })
    trunk.always('REGISTER', 403, { tag: 'refused' })
  }
  await settleIn(page, trunks)
  const session = await page.context().storageState()
  await page.context().close()
  const sessions = [session, await changeByOther(browser, tollgate)]
  return { browser, tollgate, sessions, records, customers, today }
}

type Ids = Readonly<Record<string, number>>

const idsOf = (tollgate: TollgateProcess): Ids =>
  Object.fromEntries(
    tollgate
      .query<{ id: number; name: string }>('SELECT id, name FROM customer')
      .map(({ id, name }) => [name, id]),
  )

async function storeIn(path: string, records: readonly StoredRecord[]): Promise<void> {
  const store = emptyStore(Date.now(), path)
  const STEP = 200
  for (let at = 0; at < records.length; at += STEP) {
    const values = records.slice(at, at + STEP)
    await execute(store, store.db.insertInto('cdr').values(values))
  }
  store.close()
}

const seedFor = ([first, second]: readonly number[]) => ({
  tenants: [
    { slug: 'office', domains: ['office.example'] },
    { slug: 'branch', domains: ['branch.example'] },
  ],
  rate_plans: [
    { name: 'retail', currency: 'USD' },
    { name: 'wholesale', currency: 'USD' },
  ],
  rates: [
    { rate_plan: 'retail', prefix: '1', description: 'USA', rate_per_minute: '0.60' },
    { rate_plan: 'retail', prefix: '49', description: 'Germany', rate_per_minute: '0.90' },
    { rate_plan: 'retail', prefix: '1900', description: 'Premium', rate_per_minute: '2.50' },
    { rate_plan: 'wholesale', prefix: '1', description: 'USA', rate_per_minute: '0.20' },
  ],
  customers: [
    { name: 'acme', rate_plan: 'retail', numbers: ['12025550100'], balance: '150.00' },
    { name: 'globex', rate_plan: 'retail', numbers: ['12025550111'], balance: '0.10' },
    { name: 'initech', rate_plan: 'retail', numbers: ['12025550122'], balance: '80.00' },
    { name: 'office', tenant: 'office', rate_plan: 'retail', balance: '20.00' },
  ],
  extensions: [
    { tenant: 'office', extension: '101', display_name: 'Reception', customer: 'office' },
    { tenant: 'office', extension: '102', display_name: 'Workshop', customer: 'office' },
    { tenant: 'branch', extension: '101', display_name: 'Counter' },
  ].map((each) => ({ ...each, password: `secret of ${each.display_name}` })),
  dispatcher: [
    {
      endpoint_name: 'pbx',
      set_id: 1,
      algorithm: 8,
      probe: { fail_threshold: 20 },
      nodes: [first, second].map((port, index) => ({
        host: '127.0.0.1',
        internal_port: port,
        priority: 10 + index,
      })),
    },
  ],
})

/** Operators have set this up beside the seed. */
async function settleIn(
  page: Page,
  [northern, southern, western]: readonly SipPeer[],
): Promise<void> {
  const auth = { type: 'register', username: 'trunk', password: 'secret of the trunk' }
  const at = (peer: SipPeer | undefined) => [{ host: '127.0.0.1', port: peer?.port }]
  const carriers = [
    { name: 'northern', gateways: at(northern) },
    { name: 'southern', gateways: at(southern), auth },
    { name: 'western', gateways: at(western), auth },
  ]
  const posts: (readonly [string, object])[] = [
    ...carriers.map((each): readonly [string, object] => [
      '/routing/carriers',
      { direction: 'out', rate_plan: 'wholesale', ...each },
    ]),
    ...['northern', 'southern'].map((carrier, index): readonly [string, object] => [
      '/outbound-routes',
      { name: `usa ${carrier}`, prefix: '1', carrier, priority: index + 1 },
    ]),
    ['/numbers', { number: '+12025550177' }],
    ['/numbers', { number: '+12025550178' }],
    ['/users', { ...other, role: 'admin' }],
  ]
  for (const [path, body] of posts) {
    const status = await postFrom(page, path, body)
    if (status !== 201) throw new Error(`${path} ${JSON.stringify(body)}: ${status}`)
  }
  await eventually(async () => {
    const found: unknown = await page.evaluate(
      `fetch('/api/v1/anomalies?limit=50').then((answer) => answer.text())`,
    )
    const isFound = ['southern', 'western'].every((name) => String(found).includes(name))
    if (!isFound || String(found).includes('"id":null')) throw new Error('no finding is kept yet')
  }, KEPT_WITHIN_MS)
}

/** Findings are kept once a minute. */
const KEPT_WITHIN_MS = 100_000

/** The second operator makes the premium numbers dearer. */
async function changeByOther(browser: Browser, tollgate: TollgateProcess): Promise<Session> {
  const { page, signIn } = await openConsole(browser, tollgate, { timezoneId: 'UTC' })
  await signIn(other.username, other.password)
  const [rate] = tollgate.query<{ id: number }>("SELECT id FROM rate WHERE prefix = '1900'")
  const status: unknown = await page.evaluate(
    `fetch('/api/v1/rates/${rate?.id}', { method: 'PATCH',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ rate_per_minute: '3.10' }) }).then(({ status }) => status)`,
  )
  if (status !== 200) throw new Error(`the rate is not changed: ${String(status)}`)
  const session = await page.context().storageState()
  await page.context().close()
  return session
}

/** Calls that are not answered end in one of these ways. */
const endings: readonly Partial<StoredRecord>[] = [
  { disposition: 'BUSY', sip_code: 486, hangup_cause: 'USER_BUSY' },
  { disposition: 'NO ANSWER', sip_code: 480, hangup_cause: 'NO_ANSWER' },
  { disposition: 'FAILED', sip_code: 404, hangup_cause: 'UNALLOCATED_NUMBER' },
  { disposition: 'FAILED', sip_code: 503, hangup_cause: 'NETWORK_OUT_OF_ORDER' },
]

/**
 * From the midnight before the day before yesterday until now. A third of those through southern
 * fail, and of those through northern an eighth.
 */
function callsOfThreeDays(today: number, present: number, ids: Ids): readonly StoredRecord[] {
  const random = seededRandom(54)
  const below = (count: number): number => Math.floor(random() * count)
  const begin = today - 2 * DAY
  const customers = [
    { name: 'acme', caller: '12025550100' },
    { name: 'globex', caller: '12025550111' },
    { name: 'initech', caller: '12025550122' },
    { name: 'office', caller: '101' },
  ]
  return Array.from({ length: CALLS }, (_, index) => {
    const payer = customers[index % customers.length]
    if (payer === undefined) throw new Error('there is a payer')
    const start_stamp = begin + Math.floor(((index + 0.5) / CALLS) * (present - HOUR / 6 - begin))
    const carrier = below(2) === 0 ? 'southern' : 'northern'
    const isFailed = below(24) < (carrier === 'southern' ? 8 : 3)
    const billsec = isFailed ? 0 : 10 + below(110)
    const isOffice = payer.name === 'office'
    const tenants = isOffice ? { tenant_id: 1 } : {}
    return aRecord({
      call_uuid: `lived-in-${index}`,
      start_stamp,
      end_stamp: start_stamp + (billsec + 8) * 1_000,
      answer_stamp: isFailed ? null : start_stamp + 8_000,
      direction: 'outbound',
      caller_id_number: payer.caller,
      destination_number: `1212555${String(below(10_000)).padStart(4, '0')}`,
      duration: billsec + 8,
      billsec,
      post_dial_delay_ms: 300 + below(900),
      disposition: 'ANSWERED',
      sip_code: 200,
      hangup_cause: 'NORMAL_CLEARING',
      hangup_by: 'caller',
      ...(isFailed && { ...endings[below(endings.length)], hangup_by: 'callee' as const }),
      carrier,
      customer_id: ids[payer.name] ?? null,
      currency: 'USD',
      rate_prefix: '1',
      cost_micros: billsec * 10_000,
      ...tenants,
    })
  })
}
