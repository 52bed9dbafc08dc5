/**
 * The console in Chromium, and what open consoles cost the server.
 *
 * - First render: a new browser context, so nothing is cached; from the start of the navigation to
 *   the first paint with content, to the last one of the largest content (LCP), and to the frame in
 *   which the screen has its data, on loopback. Of the sign-in page, and of screens with a session;
 *   once more with a processor that is slowed down.
 * - Frames: intervals between animation frames while a list of real live calls is scrolled by 40
 *   pixels a frame, or stands still, and calls begin and end (a call is three changes: it starts, is
 *   answered and ends); tasks longer than 50 ms; the share of the time in which the page's thread is
 *   busy. Chromium has no screen and draws in software, on the cores that the server and the callers
 *   use as well: what is late here need not be late on a desk.
 * - Server: ten open pages, two with the session of one user, while calls come and go. CPU time of
 *   the server (as the operating system counts it) in slices with and without these pages,
 *   alternated; both have the same calls.
 */
import type { Browser, BrowserContext, CDPSession, Page } from 'playwright-core'
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
  'arguments: parts=render,frames,server renders=10 slowed=4 live=2000 rates=0,10,200 rate=200 consoles=10 ' +
  'screens=calls,now,nodes rounds=2'

const usual = {
  parts: 'render,frames,server',
  renders: '10',
  /** The processor of the page is slowed down so many times, for comparison; 1: not at all. */
  slowed: '4',
  /** Calls that begin and end in a second, one figure after the other. */
  rates: '0,10,200',
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
const BETWEEN_MS = 1_500
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

/** These are opened first, the others with the session of somebody. */
const opened = [
  ['sign-in page', false, 'calls'],
  ['now', true, 'now'],
  ['live calls', true, 'calls'],
  ['customers', true, 'customers'],
  ['charts', true, 'charts'],
] as const

async function measureRender(rig: Rig): Promise<void> {
  const { renders, slowed } = rig.options
  for (const rate of new Set([1, Number(slowed)]))
    for (const [name, isSignedIn, screen] of opened) {
      const times = { paint: [] as number[], largest: [] as number[], whole: [] as number[] }
      for (let turn = 0; turn < Number(renders); turn += 1) {
        const context = await rig.browser.newContext({ viewport: { width: 1_280, height: 800 } })
        if (isSignedIn) await enter(rig, context)
        const page = await context.newPage()
        // A browser that is open has a process for the page; nothing of the console is in its cache.
        await page.goto(`${originOf(rig)}/health`)
        const debugging = await context.newCDPSession(page)
        if (rate > 1) await debugging.send('Emulation.setCPUThrottlingRate', { rate })
        await page.addInitScript(watchRender)
        const answer = await page.goto(`${originOf(rig)}/console/${screen}`)
        if (answer?.ok() !== true) throw new Error(`${screen}: ${answer?.status()}`)
        await page.getByRole('heading', { level: 1 }).waitFor()
        const found = (await page.evaluate('timesOfRender()')) as Record<string, number>
        for (const each of ['paint', 'largest', 'whole'] as const)
          times[each].push(found[each] ?? NaN)
        await context.close()
        // A user may ask 600 times a minute.
        await rest(BETWEEN_MS)
      }
      const isSlow = rate === 1 && median(times.whole) > MOST_RENDER_MS
      console.log(
        `  first render, ${name}${rate > 1 ? `, processor ${rate} times slower` : ''}: painted after ` +
          `${spread(times.paint)} ms, largest content ${spread(times.largest)} ms, with its data ` +
          `${spread(times.whole)} ms${isSlow ? `  ← more than ${MOST_RENDER_MS}` : ''}`,
      )
    }
}

/** Times from the start of the navigation, by the browser's own clock. */
const watchRender = `{
  let largest, whole
  new PerformanceObserver((list) => (largest = list.getEntries().at(-1).startTime))
    .observe({ type: 'largest-contentful-paint', buffered: true })
  const isWhole = () => {
    const main = document.querySelector('main')
    return main?.querySelector('h1') != null &&
      main.querySelector('[aria-busy=true]') === null && !main.textContent.includes('Loading …')
  }
  // It is in sight with the frame after the one that finds it.
  const look = () => (isWhole() ? requestAnimationFrame((at) => (whole = at)) : requestAnimationFrame(look))
  requestAnimationFrame(look)
  window.timesOfRender = async () => {
    while (whole === undefined) await new Promise((resolve) => setTimeout(resolve, 20))
    await new Promise((resolve) => setTimeout(resolve, 200))
    const [paint] = performance.getEntriesByName('first-contentful-paint')
    return { paint: paint.startTime, largest, whole }
  }
}`

async function measureFrames(rig: Rig): Promise<void> {
  const live = Number(rig.options.live)
  const held = await holdCalls(rig, live)
  const context = await rig.browser.newContext({ viewport: { width: 1_280, height: 800 } })
  await enter(rig, context)
  const page = await context.newPage()
  const debugging = await context.newCDPSession(page)
  await debugging.send('Performance.enable')
  await page.goto(`${originOf(rig)}/console/calls`)
  await page.getByRole('table').getByRole('row').nth(5).waitFor()
  const shown = await page.locator('.count').first().textContent()
  for (const rate of rig.options.rates.split(',').map(Number))
    for (const [name, step] of [
      ['scrolling', 40],
      ['standing still', 0],
    ] as const) {
      const calls =
        rate === 0 ? undefined : placeCalls(rig.tollgate.sipPort, rate, rate * 9, caller)
      if (rate > 0) await rest(1_500)
      const title = `${shown} live calls, ${name}, ${rate === 0 ? 'no call begins or ends' : `${rate} calls a second begin and end`}`
      reportFrames(title, await framesOf(page, debugging, step))
      await calls
    }
  await context.close()
  await held.stop()
}

interface Frames {
  readonly intervals: readonly number[]
  /** Durations of the tasks that were longer than 50 ms. */
  readonly long: readonly number[]
  /** How much of the time the page's thread had work. */
  readonly busyPercent: number
}

async function framesOf(page: Page, debugging: CDPSession, step: number): Promise<Frames> {
  const busySeconds = async (): Promise<number> => {
    const { metrics } = await debugging.send('Performance.getMetrics')
    return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? NaN
  }
  const before = { busy: await busySeconds(), at: performance.now() }
  const found = (await page.evaluate(`(${watchFrames})(${step})`)) as Pick<
    Frames,
    'intervals' | 'long'
  >
  const passed = (performance.now() - before.at) / 1_000
  return { ...found, busyPercent: (100 * ((await busySeconds()) - before.busy)) / passed }
}

function reportFrames(name: string, { intervals, long, busyPercent }: Frames): void {
  const sorted = intervals.toSorted((a, b) => a - b)
  const part = (share: number): number => sorted[Math.floor((sorted.length - 1) * share)] ?? NaN
  const total = intervals.reduce((sum, each) => sum + each, 0)
  const late = intervals.filter((each) => each > 1.5 * FRAME_MS).length
  console.log(
    `  frames, ${name}: ${((1_000 * intervals.length) / total).toFixed(1)} a second; interval p50 ` +
      `${part(0.5).toFixed(1)}, p95 ${part(0.95).toFixed(1)}, p99 ${part(0.99).toFixed(1)}, longest ${part(1).toFixed(1)} ms; ` +
      `${late} of ${intervals.length} late; ${long.length} tasks over 50 ms` +
      `${long.length > 0 ? ` (${long.map((ms) => ms.toFixed(0)).join(', ')})` : ''}; ` +
      `the page's thread is busy for ${busyPercent.toFixed(1)} % of the time`,
  )
}

/** Down and up again, by `step` pixels a frame. */
const watchFrames = `(step) => new Promise((resolve) => {
  const box = document.querySelector('.scroll')
  const intervals = []
  const long = []
  const watch = new PerformanceObserver((list) => long.push(...list.getEntries().map(({ duration }) => duration)))
  watch.observe({ type: 'longtask' })
  let last
  const first = performance.now()
  const frame = (now) => {
    if (last !== undefined) intervals.push(now - last)
    last = now
    const before = box.scrollTop
    if (step !== 0) box.scrollTop += step
    if (box.scrollTop === before) step = -step
    if (now - first < ${SCROLL_MS}) requestAnimationFrame(frame)
    else resolve({ intervals, long })
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
