/**
 * `npm run screenshots [-- <folder> [<seconds of calls first>]]`: pictures of every screen of the
 * menu and of the first thing of each list, light and dark, wide and as narrow as a phone, into the
 * folder; and those of the README into `readmeFolder`. The demo runs, its user signs in as the demo
 * prints it, and Chromium (Debian: chromium) takes them.
 */
import { spawn } from 'node:child_process'
import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Browser, Page } from 'playwright-core'
import { chooseScreen, hrefs, openBrowser } from './console-browser.ts'

/** Not in git where it is not given. */
const folder = process.argv[2] ?? 'dist/screenshots'
const readmeFolder = 'control/console/screenshots'
/** The most bytes of one picture of the README. */
const MAX_BYTES = 150_000
/** The demo places a call a second: charts with one minute of it show something. */
const CALLS_SECONDS = Number(process.argv[3] ?? 75)
/** The data of a screen, and its charts. */
const SETTLED_MS = 1_200

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

const demo = spawn(process.execPath, ['dist/main.js', 'demo'], {
  env: {
    PATH: process.env['PATH'] ?? '',
    SIP_LISTEN: 'udp/127.0.0.1:0',
    API_LISTEN: '127.0.0.1:0',
    EDGE_LISTEN: '127.0.0.1:0',
  },
  stdio: ['ignore', 'pipe', 'inherit'],
})
try {
  const { address, password } = await whatItPrints()
  process.stdout.write(`the demo is at ${address}; ${CALLS_SECONDS} s of calls first\n`)
  await sleep(CALLS_SECONDS * 1_000)
  const browser = await openBrowser()
  for (const colorScheme of ['light', 'dark'] as const)
    for (const width of [1_280, 390]) {
      const page = await newPage(browser, address, colorScheme, width)
      const place = join(folder, `${colorScheme}-${width}`)
      mkdirSync(place, { recursive: true })
      await picture(page, place, 'sign-in')
      await signIn(page, password)
      await takeScreens(page, place)
      for (const path of ['/guide', '/docs']) {
        await page.goto(path)
        await picture(page, place, path.slice(1), { fullPage: false })
      }
      await page.context().close()
    }
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
  await browser.close()
} finally {
  demo.kill('SIGINT')
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

/** Each screen of the menu, and the first item of those that have items. */
async function takeScreens(page: Page, place: string): Promise<void> {
  for (const path of await hrefs(page, 'nav a[href^="/console/"]')) {
    const name = path.slice('/console/'.length)
    await chooseScreen(page, path)
    await picture(page, place, name)
    const [item] = await hrefs(page, `main a[href^="${path}/"]`)
    if (item === undefined) continue
    // Lists change while the demo runs: the address of an item stays.
    await page.goto(item)
    await picture(page, place, `${name}-item`)
  }
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
  process.stdout.write(`${path}\n`)
}

async function whatItPrints(): Promise<{ readonly address: string; readonly password: string }> {
  let password: string | undefined
  let address: string | undefined
  for await (const line of createInterface({ input: demo.stdout })) {
    password ??= /^created user admin.* password (\S+)/.exec(line)?.[1]
    address ??= /^console: (http:\S+\/);/.exec(line)?.[1]
    if (password !== undefined && address !== undefined) break
  }
  if (password === undefined || address === undefined) throw new Error('the demo has ended')
  // Its lines have to be read, or it waits.
  demo.stdout.resume()
  return { address, password }
}
