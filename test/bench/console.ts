/**
 * The console in Chromium, and what open consoles cost the server.
 *
 * - First render: a new browser context, so nothing is cached; from the navigation to the first paint with content,
 *   and to the heading of the screen, on loopback. Of the sign-in page, and of the live calls with a session.
 * - Frames: intervals between animation frames while a list of real live calls is scrolled by 40 pixels a frame, and
 *   calls begin and end. Chromium has no screen and draws in software, on the cores that the server and the callers
 *   use as well: what is late here need not be late on a desk.
 * - Server: a page records which requests a screen makes while calls come; ten clients then repeat them, two with the
 *   session of one user, each with its own event stream. CPU time of the server (as the operating system counts it)
 *   in slices with and without these clients, alternated; both have the same calls.
 */
import { get, type IncomingMessage } from 'node:http'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { openBrowser } from '../support/console-browser.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { median, spread } from './load/figures.ts'
import { LoggedCalls } from './load/logged-calls.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { optionsOf } from './load/options.ts'
import { cpuMicros } from './load/process-cpu.ts'
import { placeCalls, startNode } from './load/sipp-load.ts'

export const describe =
  'the console: first render, frames with 2,000 live calls, CPU of the server for ten open consoles; ' +
  'arguments: parts=render,frames,server renders=15 live=2000 rate=200 consoles=10 screens=calls,now,nodes rounds=2'

const usual = {
  parts: 'render,frames,server',
  renders: '15',
  live: '2000',
  serverLive: '1000',
  rate: '200',
  consoles: '10',
  screens: 'calls,now,nodes',
  rounds: '2',
}

const MOST_RENDER_MS = 300
const MOST_CORE_PERCENT = 2
const FRAME_MS = 1_000 / 60
const SCROLL_MS = 5_000
const RECORD_MS = 12_000
const SLICE_MS = 4_000
const admin = { username: 'admin', password: 'correct horse battery' }

type Cookies = Parameters<BrowserContext['addCookies']>[0][number][]

interface Rig {
  readonly tollgate: TollgateProcess
  readonly browser: Browser
  readonly cookies: Cookies
  readonly options: typeof usual
}

export async function run(words: readonly string[] = []): Promise<void> {
  const options = optionsOf(words, usual)
  const parts = options.parts.split(',')
  const node = await startNode()
  const tollgate = await TollgateProcess.start(oneCustomer([node.port]), {
    LOG_LEVEL: 'warn',
    ADMIN_PASSWORD: admin.password,
  })
  const browser = await openBrowser()
  try {
    const rig: Rig = { tollgate, browser, cookies: [], options }
    if (parts.includes('render')) await measureRender(rig)
    if (parts.includes('frames')) await measureFrames(rig)
    if (parts.includes('server')) await measureServer(rig)
  } finally {
    await browser.close()
    await tollgate.stop()
    await node.stop()
  }
}

/** Calls that go on until they are stopped. */
async function holdCalls({ tollgate }: Rig, calls: number): Promise<LoggedCalls> {
  const plan = { caller, called: '18005551212', rate: 200, calls, name: 'held' }
  const held = await LoggedCalls.start('held-caller.xml', tollgate.sipPort, plan)
  await rest((calls / 200) * 1_000 + 2_000)
  return held
}

const rest = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

const originOf = ({ tollgate }: Rig): string => `http://127.0.0.1:${tollgate.apiPort}`

/** Signs in as the administrator: once, because a minute has ten logins. */
async function enter(rig: Rig, context: BrowserContext): Promise<void> {
  if (rig.cookies.length > 0) return context.addCookies(rig.cookies)
  await signIn(rig, context, admin)
  rig.cookies.push(...(await context.cookies()))
}

async function signIn(rig: Rig, context: BrowserContext, user: typeof admin): Promise<void> {
  const answer = await context.request.post(`${originOf(rig)}/api/v1/auth/session`, {
    headers: { 'Sec-Fetch-Site': 'same-origin' },
    data: user,
  })
  if (!answer.ok()) throw new Error(`${user.username} cannot sign in: ${answer.status()}`)
}

async function measureRender(rig: Rig): Promise<void> {
  for (const [name, isSignedIn] of [
    ['sign-in page', false],
    ['live calls, signed in', true],
  ] as const) {
    const painted: number[] = []
    const answered: number[] = []
    for (let turn = 0; turn < Number(rig.options.renders); turn += 1) {
      const context = await rig.browser.newContext()
      if (isSignedIn) await enter(rig, context)
      const page = await context.newPage()
      // A browser that is open has a process for the page; nothing of the console is in its cache.
      await page.goto(`${originOf(rig)}/health`)
      await page.goto(`${originOf(rig)}/console/calls`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      const { paint, answer } = (await page.evaluate(timesOfRender)) as Record<string, number>
      painted.push(paint ?? NaN)
      answered.push(answer ?? NaN)
      await context.close()
    }
    const isSlow = median(painted) > MOST_RENDER_MS
    console.log(
      `  first render, ${name}: painted after ${spread(painted)} ms` +
        `${isSlow ? `  ← more than ${MOST_RENDER_MS}` : ''}; all that the screen asks for answered after ${spread(answered)} ms`,
    )
  }
}

/** From the start of the navigation, by the browser's own clock. */
const timesOfRender = `(async () => {
  await new Promise((resolve) => setTimeout(resolve, 200))
  const [paint] = performance.getEntriesByName('first-contentful-paint')
  const asked = performance.getEntriesByType('resource').map(({ responseEnd }) => responseEnd)
  return { paint: paint.startTime, answer: Math.max(...asked) }
})()`

async function measureFrames(rig: Rig): Promise<void> {
  const live = Number(rig.options.live)
  const held = await holdCalls(rig, live)
  const context = await rig.browser.newContext({ viewport: { width: 1_280, height: 800 } })
  await enter(rig, context)
  const page = await context.newPage()
  await page.goto(`${originOf(rig)}/console/calls`)
  await page.getByRole('table').getByRole('row').nth(5).waitFor()
  const shown = await page.locator('.count').first().textContent()
  for (const [name, rate] of [
    ['no call begins or ends', 0],
    ['20 calls a second begin and end', 20],
    ['200 calls a second begin and end', 200],
  ] as const) {
    const calls = rate === 0 ? undefined : placeCalls(rig.tollgate.sipPort, rate, rate * 9, caller)
    if (rate > 0) await rest(1_500)
    const intervals = (await page.evaluate(scrolling)) as number[]
    report(`frames, ${shown} live calls, scrolling, ${name}`, intervals)
    await calls
  }
  await context.close()
  await held.stop()
}

function report(name: string, intervals: readonly number[]): void {
  const sorted = intervals.toSorted((a, b) => a - b)
  const part = (share: number): number => sorted[Math.floor((sorted.length - 1) * share)] ?? NaN
  const total = intervals.reduce((sum, each) => sum + each, 0)
  const late = intervals.filter((each) => each > 1.5 * FRAME_MS).length
  console.log(
    `  ${name}: ${((1_000 * intervals.length) / total).toFixed(1)} frames a second; interval p50 ` +
      `${part(0.5).toFixed(1)}, p95 ${part(0.95).toFixed(1)}, p99 ${part(0.99).toFixed(1)}, longest ${part(1).toFixed(1)} ms; ` +
      `${late} of ${intervals.length} frames late`,
  )
}

/** Down and up again, 40 pixels a frame. */
const scrolling = `new Promise((resolve) => {
  const box = document.querySelector('.scroll')
  const intervals = []
  let step = 40
  let last
  const first = performance.now()
  const frame = (now) => {
    if (last !== undefined) intervals.push(now - last)
    last = now
    const before = box.scrollTop
    box.scrollTop += step
    if (box.scrollTop === before) step = -step
    if (now - first < ${SCROLL_MS}) requestAnimationFrame(frame)
    else resolve(intervals)
  }
  requestAnimationFrame(frame)
})`

/** A request of a page: its path, and when it was made after the recording began. */
interface Asked {
  readonly path: string
  readonly at: number
}

async function measureServer(rig: Rig): Promise<void> {
  const rate = Number(rig.options.rate)
  const live = Number(rig.options.serverLive)
  const consoles = Number(rig.options.consoles)
  const rounds = Number(rig.options.rounds)
  const cookies = await sessionsOf(rig, consoles)
  const held = await holdCalls(rig, live)
  for (const screen of rig.options.screens.split(',')) {
    const seconds = (RECORD_MS + rounds * 4 * (SLICE_MS + 1_000)) / 1_000 + 4
    const calls = placeCalls(rig.tollgate.sipPort, rate, Math.ceil(rate * seconds), caller)
    const asked = await record(rig, screen)
    console.log(
      `  ${screen}: a page has asked for ${countsOf(asked)} in ${RECORD_MS / 1_000} s, and the event stream`,
    )
    const shares = { without: [] as number[], with: [] as number[] }
    let bytes = 0
    for (let slice = 0; slice < rounds * 4; slice += 1) {
      const isOpen = [1, 2].includes(slice % 4)
      const open = isOpen
        ? cookies.map((cookie, index) => new OpenConsole(rig, cookie, asked, index / consoles))
        : []
      // What opening costs is not what being open costs.
      await rest(1_000)
      const before = { cpu: cpuMicros([rig.tollgate.pid]), at: performance.now() }
      await rest(SLICE_MS)
      const micros = cpuMicros([rig.tollgate.pid]) - before.cpu
      shares[isOpen ? 'with' : 'without'].push(micros / 10 / (performance.now() - before.at))
      for (const each of open) {
        each.close()
        bytes += each.bytes
        if (each.refused > 0) console.log(`  ${each.refused} requests were refused`)
      }
    }
    const { succeeded, calls: placed } = await calls
    const added = median(shares.with) - median(shares.without)
    console.log(
      `  ${screen}: ${consoles} consoles at ${rate} calls/s and ${live} live ones: ${added.toFixed(2)} % of a core` +
        `${added > MOST_CORE_PERCENT ? `  ← more than ${MOST_CORE_PERCENT}` : ''} (with ${spread(shares.with, 1)}, without ` +
        `${spread(shares.without, 1)} %), ${Math.round(bytes / 1_024 / consoles / (rounds * 2 * (SLICE_MS / 1_000 + 1)))} kB/s each; ${succeeded} of ${placed} calls`,
    )
  }
  await held.stop()
}

const countsOf = (asked: readonly Asked[]): string => {
  const counts = new Map<string, number>()
  for (const { path } of asked) counts.set(path, (counts.get(path) ?? 0) + 1)
  return [...counts].map(([path, count]) => `${path} ${count} times`).join(', ') || 'nothing'
}

/** What an open page asks for, once it is there. */
async function record(rig: Rig, screen: string): Promise<readonly Asked[]> {
  const context = await rig.browser.newContext()
  await enter(rig, context)
  const page = await context.newPage()
  await page.goto(`${originOf(rig)}/console/${screen}`)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await rest(2_000)
  const asked = await requestsOf(page, RECORD_MS)
  await context.close()
  return asked
}

async function requestsOf(page: Page, ms: number): Promise<readonly Asked[]> {
  const asked: Asked[] = []
  const began = performance.now()
  page.on('request', (request) => {
    const { pathname, search } = new URL(request.url())
    asked.push({ path: pathname + search, at: performance.now() - began })
  })
  await rest(ms)
  return asked.filter(({ path }) => path !== '/api/v1/events')
}

/** The least that share a session: a user may ask 600 times a minute. */
const CONSOLES_OF_USER = 2

/** One cookie for each console. */
async function sessionsOf(rig: Rig, count: number): Promise<readonly string[]> {
  const context = await rig.browser.newContext()
  await enter(rig, context)
  const cookies: string[] = []
  for (let index = 0; index < count / CONSOLES_OF_USER; index += 1) {
    const user = { username: `user${index}`, password: admin.password }
    const made = await context.request.post(`${originOf(rig)}/api/v1/users`, {
      headers: { 'Sec-Fetch-Site': 'same-origin' },
      data: { ...user, role: 'admin' },
    })
    if (!made.ok()) throw new Error(await made.text())
    const own = await rig.browser.newContext()
    await signIn(rig, own, user)
    const cookie = await cookieOf(own)
    cookies.push(...Array.from({ length: CONSOLES_OF_USER }, () => cookie))
    await own.close()
  }
  await context.close()
  return cookies.slice(0, count)
}

async function cookieOf(context: BrowserContext): Promise<string> {
  const [cookie] = await context.cookies()
  if (cookie === undefined) throw new Error('there is no session')
  return `${cookie.name}=${cookie.value}`
}

/** One client: the event stream, and the requests of a page again and again. */
class OpenConsole {
  bytes = 0
  refused = 0
  readonly #headers: Readonly<Record<string, string>>
  readonly #origin: string
  readonly #timers: NodeJS.Timeout[] = []
  readonly #abort = new AbortController()

  /** `phase`: 0 to 1; clients do not ask at the same moment. */
  constructor(rig: Rig, cookie: string, asked: readonly Asked[], phase: number) {
    this.#origin = originOf(rig)
    this.#headers = { Cookie: cookie, 'Sec-Fetch-Site': 'same-origin' }
    this.#ask('/api/v1/events', 'text/event-stream')
    for (const { path, at } of asked) {
      const first = (at + phase * RECORD_MS) % RECORD_MS
      this.#timers.push(setTimeout(() => this.#ask(path, 'application/json'), first))
    }
  }

  close(): void {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#abort.abort()
  }

  #ask(path: string, accept: string): void {
    const options = { headers: { ...this.#headers, Accept: accept }, signal: this.#abort.signal }
    const request = get(`${this.#origin}${path}`, options, (answer: IncomingMessage) => {
      if (answer.statusCode !== 200) this.refused += 1
      answer.on('data', (chunk: Buffer) => (this.bytes += chunk.length))
      answer.on('error', () => undefined)
    })
    request.on('error', () => undefined)
  }
}
