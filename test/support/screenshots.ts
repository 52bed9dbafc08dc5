/**
 * `npm run screenshots [-- <folder> [<seconds of calls first>]]`: pictures of every screen of the
 * menu and of the first thing of each list, light and dark, wide and as narrow as a phone, into the
 * folder; and those of the README into `readmeFolder`. Two demos run: one with calls, and one with
 * incidents, in which more is made (`lived-in.ts`). Their users sign in as the demos print it, and
 * Chromium (Debian: chromium) takes them.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Browser, Page } from 'playwright-core'
import { chooseScreen, hrefs, openBrowser } from './console-browser.ts'
import { makeLivedIn } from './lived-in.ts'

/** Not in git where it is not given. */
const folder = process.argv[2] ?? 'dist/screenshots'
const readmeFolder = 'control/console/screenshots'
/** The most bytes of one picture of the README. */
const MAX_BYTES = 150_000
/** The demo places a call a second: charts with one minute of it show something. */
const CALLS_SECONDS = Number(process.argv[3] ?? 75)
/** The data of a screen, and its charts. */
const SETTLED_MS = 1_200

/** Tables of which a part is out of sight at the right: on phones many are, else none may be. */
const cutTables = `[...document.querySelectorAll('.table > .scroll')]
  .filter((box) => innerWidth > 1000 && box.scrollWidth > box.clientWidth)
  .map((box) => box.getAttribute('aria-label')).join()`

const firstRow = (page: Page) => page.getByRole('row').getByRole('link').first()

/** The pictures of the README: the screen, and how to come to what is of interest there. */
const readmePictures: Readonly<
  Record<string, { readonly path: string; readonly prepare?: (page: Page) => Promise<unknown> }>
> = {
  now: { path: '/console/now' },
  calls: { path: '/console/calls', prepare: (page) => firstRow(page).waitFor() },
  call: {
    path: '/console/history',
    prepare: async (page) => {
      const answered = page.getByRole('row').filter({ hasText: 'answered' })
      await answered.getByRole('link').first().click()
      await page
        .getByText(/INVITE/)
        .first()
        .waitFor()
      await page.evaluate(`document.querySelector('.ladder')?.scrollIntoView()`)
    },
  },
  nodes: { path: '/console/nodes' },
  customer: {
    path: '/console/customers',
    prepare: async (page) => {
      await firstRow(page).click()
      await page.getByRole('heading', { name: 'Latest calls' }).waitFor()
    },
  },
}

const demos: ChildProcess[] = []
try {
  const [calling, wrong] = await Promise.all([startDemo([]), startDemo(['--incidents'])])
  process.stdout.write(`the demo is at ${calling.address}; ${CALLS_SECONDS} s of calls first\n`)
  const browser = await openBrowser()
  await fill(browser, wrong)
  await sleep(CALLS_SECONDS * 1_000)
  for (const colorScheme of ['light', 'dark'] as const)
    for (const width of [1_280, 390]) {
      const place = join(folder, `${colorScheme}-${width}`)
      mkdirSync(place, { recursive: true })
      const page = await newPage(browser, wrong.address, colorScheme, width)
      await picture(page, place, 'sign-in')
      await signIn(page, wrong.password)
      await takeScreens(
        page,
        place,
        (await menuOf(page)).filter((path) => !needsCalls(path)),
      )
      for (const path of ['/guide', '/docs']) {
        await page.goto(path)
        await picture(page, place, path.slice(1), { fullPage: false })
      }
      await page.context().close()
      const live = await newPage(browser, calling.address, colorScheme, width)
      await signIn(live, calling.password)
      await takeScreens(live, place, (await menuOf(live)).filter(needsCalls))
      await live.context().close()
    }
  await takeReadme(browser, calling)
  await browser.close()
} finally {
  for (const demo of demos) demo.kill('SIGINT')
}

async function newPage(
  browser: Browser,
  baseURL: string,
  colorScheme: 'light' | 'dark',
  width: number,
): Promise<Page> {
  const viewport = { width, height: 720 }
  const context = await browser.newContext({ baseURL, colorScheme, locale: 'en-GB', viewport })
  const page = await context.newPage()
  await page.goto('/')
  return page
}

async function signIn(page: Page, password: string): Promise<void> {
  await page.getByLabel('User').fill('admin')
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('button', { name: 'Account' }).waitFor()
}

function menuOf(page: Page): Promise<string[]> {
  return hrefs(page, 'nav a[href^="/console/"]')
}

/** Screens that show calls as they go on. */
function needsCalls(path: string): boolean {
  return ['now', 'calls', 'history', 'charts'].includes(nameOf(path))
}

function nameOf(path: string): string {
  return path.slice('/console/'.length)
}

/** Each of these screens, and the first item of those that have items. */
async function takeScreens(page: Page, place: string, paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    await chooseScreen(page, path)
    await picture(page, place, nameOf(path))
    const [item] = await hrefs(page, `main a[href^="${path}/"]`)
    if (item === undefined) continue
    // Lists change while the demo runs: the address of an item stays.
    await page.goto(item)
    await picture(page, place, `${nameOf(path)}-item`)
  }
}

async function takeReadme(browser: Browser, { address, password }: Demo): Promise<void> {
  const page = await newPage(browser, address, 'light', 1_280)
  await signIn(page, password)
  mkdirSync(readmeFolder, { recursive: true })
  for (const [name, { path, prepare }] of Object.entries(readmePictures)) {
    await chooseScreen(page, path)
    await prepare?.(page)
    await sleep(SETTLED_MS)
    const file = join(readmeFolder, `${name}.png`)
    await page.screenshot({ path: file })
    const { size } = statSync(file)
    if (size > MAX_BYTES) throw new Error(`${file} has ${size} bytes, more than ${MAX_BYTES}`)
    process.stdout.write(`${file}: ${size} bytes\n`)
  }
}

/** Makes what an installation has that is used. */
async function fill(browser: Browser, { address, password }: Demo): Promise<void> {
  const page = await newPage(browser, address, 'light', 1_280)
  await signIn(page, password)
  await makeLivedIn(page)
  await page.context().close()
}

/** Takes a picture of all of the page, or of the part in sight. */
async function picture(
  page: Page,
  place: string,
  name: string,
  { fullPage }: { fullPage: boolean } = { fullPage: true },
): Promise<void> {
  await page.getByRole('heading', { level: 1 }).first().waitFor()
  await sleep(SETTLED_MS)
  const path = join(place, `${name}.png`)
  await page.screenshot({ path, fullPage })
  const cut = await page.evaluate(cutTables)
  process.stdout.write(`${path}${cut === '' ? '' : `, cut: ${String(cut)}`}\n`)
}

interface Demo {
  readonly address: string
  readonly password: string
}

async function startDemo(options: readonly string[]): Promise<Demo> {
  const demo = spawn(process.execPath, ['dist/main.js', 'demo', ...options], {
    env: {
      PATH: process.env['PATH'] ?? '',
      SIP_LISTEN: 'udp/127.0.0.1:0',
      API_LISTEN: '127.0.0.1:0',
      EDGE_LISTEN: '127.0.0.1:0',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  demos.push(demo)
  let password: string | undefined
  let address: string | undefined
  // `incidents: planted` comes when all of them have happened.
  let isReady = options.length === 0
  for await (const line of createInterface({ input: demo.stdout })) {
    password ??= /^created user admin.* password (\S+)/.exec(line)?.[1]
    address ??= /^console: (http:\S+\/);/.exec(line)?.[1]
    isReady ||= line.startsWith('incidents: planted')
    if (password !== undefined && address !== undefined && isReady) break
  }
  if (password === undefined || address === undefined) throw new Error('the demo has ended')
  // Its lines have to be read, or it waits.
  demo.stdout.resume()
  return { address, password }
}
