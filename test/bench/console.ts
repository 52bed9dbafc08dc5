/**
 * The console in Chromium, and what open consoles cost the server.
 *
 * - First render: a new browser context, so nothing is cached; from the navigation to the first
 *   paint with content,
 *   and to the heading of the screen, on loopback. Of the sign-in page, and of the live calls with a session.
 * - Frames: intervals between animation frames while a list of real live calls is scrolled by 40
 *   pixels a frame, and
 *   calls begin and end. Chromium has no screen and draws in software, on the cores that the server and the callers
 *   use as well: what is late here need not be late on a desk.
 * - Server: ten open pages, two with the session of one user, while calls come and go. CPU time of
 *   the server (as the
 *   operating system counts it) in slices with and without these pages, alternated; both have the same calls.
 */
import type { Browser, BrowserContext } from 'playwright-core'
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

/** Times from the start of the navigation, by the browser's own clock. */
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

async function measureServer(rig: Rig): Promise<void> {
  const { options, tollgate } = rig
  const [rate, live, consoles, rounds] = [
    options.rate,
    options.serverLive,
    options.consoles,
    options.rounds,
  ].map(Number) as [number, number, number, number]
  const contexts = await contextsOf(rig, consoles)
  const held = await holdCalls(rig, live)
  for (const screen of options.screens.split(',')) {
    const seconds = (rounds * 4 * (SLICE_MS + 3_000)) / 1_000 + 4
    const calls = placeCalls(tollgate.sipPort, rate, Math.ceil(rate * seconds), caller)
    const shares = { without: [] as number[], with: [] as number[] }
    for (let slice = 0; slice < rounds * 4; slice += 1) {
      const isOpen = [1, 2].includes(slice % 4)
      const pages = isOpen ? await Promise.all(contexts.map((each) => each.newPage())) : []
      await Promise.all(pages.map((page) => page.goto(`${originOf(rig)}/console/${screen}`)))
      // Opening costs something else than being open.
      await rest(2_000)
      const before = { cpu: cpuMicros([tollgate.pid]), at: performance.now() }
      await rest(SLICE_MS)
      const micros = cpuMicros([tollgate.pid]) - before.cpu
      shares[isOpen ? 'with' : 'without'].push(micros / 10 / (performance.now() - before.at))
      await Promise.all(pages.map((page) => page.close()))
    }
    const { succeeded, calls: placed } = await calls
    const added = median(shares.with) - median(shares.without)
    const verdict = added > MOST_CORE_PERCENT ? `  ← more than ${MOST_CORE_PERCENT}` : ''
    console.log(
      `  ${screen}: ${consoles} consoles at ${rate} calls/s and ${live} live ones: ${added.toFixed(2)} % of a core${verdict} ` +
        `(with ${spread(shares.with, 1)}, without ${spread(shares.without, 1)} %); ${succeeded} of ${placed} calls`,
    )
  }
  await held.stop()
}

/** The least that share a session: a user may ask 600 times a minute. */
const CONSOLES_OF_USER = 2

/** A browser's context for each console. */
async function contextsOf(rig: Rig, count: number): Promise<readonly BrowserContext[]> {
  const context = await rig.browser.newContext()
  await enter(rig, context)
  const contexts: BrowserContext[] = []
  for (let index = 0; index < count; index += 1) {
    const user = { username: `user${index}`, password: admin.password }
    if (index % CONSOLES_OF_USER > 0) {
      contexts.push(contexts[index - 1] ?? context)
      continue
    }
    const made = await context.request.post(`${originOf(rig)}/api/v1/users`, {
      headers: { 'Sec-Fetch-Site': 'same-origin' },
      data: { ...user, role: 'admin' },
    })
    if (!made.ok()) throw new Error(await made.text())
    const own = await rig.browser.newContext()
    await signIn(rig, own, user)
    contexts.push(own)
  }
  return contexts
}
