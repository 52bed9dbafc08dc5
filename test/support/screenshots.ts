/**
 * `npm run screenshots [-- <folder> [--seconds 75] [--parts screens,dialogs,readme] [--colours
 * light,dark] [--widths 1280,390]]`: pictures of every screen of the menu, of the first thing of each
 * list and of its views, and of each question, form and box that their buttons open, light and dark,
 * wide and as narrow as a phone, into the folder; and those of the README into `readmeFolder`. Two
 * demos run: one with calls, for so many seconds first, and one with incidents, in which more is made
 * (`lived-in.ts`). Their users sign in as the demos print it, and Chromium (Debian: chromium) takes
 * them.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { Browser, Page } from 'playwright-core'
import { chooseScreen, hrefs, openBrowser } from './console-browser.ts'
import { eachDialog } from './each-dialog.ts'
import { makeLivedIn } from './lived-in.ts'

const { values: wanted, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    // The demo places a call a second: charts with one minute of it show something.
    seconds: { type: 'string', default: '75' },
    parts: { type: 'string', default: 'screens,dialogs,readme' },
    colours: { type: 'string', default: 'light,dark' },
    widths: { type: 'string', default: '1280,390' },
  },
})
/** Not in git where it is not given. */
const folder = positionals[0] ?? 'dist/screenshots'
const parts = new Set(wanted.parts.split(','))
const colours = (['light', 'dark'] as const).filter((each) => wanted.colours.includes(each))
const widths = wanted.widths.split(',').map(Number)
const readmeFolder = 'control/console/screenshots'
/** The most bytes of one picture of the README. */
const MAX_BYTES = 150_000
/** The data of a screen, and its charts. */
const SETTLED_MS = 1_200
/** A dialog or a box that has just opened. */
const OPENED_MS = 250

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
      const answered = page.getByRole('row').filter({ hasText: '✓ answered' })
      await answered.getByRole('link').first().click()
      await page
        .getByText(/INVITE/)
        .first()
        .waitFor()
      await page
        .getByRole('heading', { name: 'What happened' })
        .evaluate('(it) => it.scrollIntoView()')
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
  process.stdout.write(`the demo is at ${calling.address}; ${wanted.seconds} s of calls first\n`)
  const browser = await openBrowser()
  await fill(browser, wrong)
  await sleep(Number(wanted.seconds) * 1_000)
  if (parts.has('screens') || parts.has('dialogs'))
    for (const colorScheme of colours)
      for (const width of widths) {
        const place = join(folder, `${colorScheme}-${width}`)
        mkdirSync(place, { recursive: true })
        await takeQuiet(await newPage(browser, wrong.address, colorScheme, width), place, wrong)
        const page = await newPage(browser, calling.address, colorScheme, width)
        await signIn(page, calling.password)
        await takeScreens(page, place, (await menuOf(page)).filter(needsCalls))
        await page.context().close()
      }
  if (parts.has('readme')) await takeReadme(browser, calling)
  await browser.close()
} finally {
  for (const demo of demos) demo.kill('SIGINT')
}

/** These screens need no calls that go on. */
async function takeQuiet(page: Page, place: string, { password }: Demo): Promise<void> {
  if (parts.has('screens')) await picture(page, place, 'sign-in')
  await signIn(page, password)
  const screens = (await menuOf(page)).filter((path) => !needsCalls(path))
  await takeScreens(page, place, screens)
  for (const [name, query] of [
    ['now-with-findings', ''],
    ['now-history', '?view=history'],
  ] as const) {
    await page.goto(`/console/now${query}`)
    await takeAll(page, place, name)
  }
  for (const path of parts.has('screens') ? ['/guide', '/docs'] : []) {
    await page.goto(path)
    await picture(page, place, path.slice(1), { fullPage: false })
  }
  await page.context().close()
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

/** Each of these screens, and the first item of those that have items, with its views. */
async function takeScreens(page: Page, place: string, paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    await chooseScreen(page, path)
    await takeAll(page, place, nameOf(path))
    const [item] = await hrefs(page, `main a[href^="${path}/"]`)
    if (item === undefined) continue
    // Lists change while the demo runs: the address of an item stays.
    await page.goto(item)
    await takeAll(page, place, `${nameOf(path)}-item`)
    for (const view of await hrefs(page, `main .tabs a[href^="${item}?"]`)) {
      await page.goto(view)
      await takeAll(page, place, `${nameOf(path)}-item-${view.split('=').at(-1)}`)
    }
  }
}

/** A picture of the screen, and of each thing that its buttons open. */
async function takeAll(page: Page, place: string, name: string): Promise<void> {
  await (parts.has('screens') ? picture(page, place, name) : settle(page))
  if (!parts.has('dialogs')) return
  await eachDialog(page, async (dialog) => {
    await sleep(OPENED_MS)
    const path = join(place, `${name}+${dialog.name.toLowerCase().replaceAll(/\W+/g, '-')}.png`)
    await page.screenshot({ path })
    process.stdout.write(`${path}\n`)
  })
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
  await settle(page)
  const path = join(place, `${name}.png`)
  await page.screenshot({ path, fullPage })
  const cut = await page.evaluate(cutTables)
  process.stdout.write(`${path}${cut === '' ? '' : `, cut: ${String(cut)}`}\n`)
}

async function settle(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).first().waitFor()
  await sleep(SETTLED_MS)
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
