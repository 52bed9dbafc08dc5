/**
 * `npm run screenshots`: pictures of the console for the README, into `folder`. The demo runs, its
 * user signs in as the demo prints it, and Chromium (Debian: chromium) takes them.
 */
import { spawn } from 'node:child_process'
import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { openBrowser } from './console-browser.ts'

const folder = 'control/console/screenshots'
/** Of one picture. */
const MAX_BYTES = 150_000
/** The demo places a call a second: charts with one minute of it show something. */
const CALLS_MS = 75_000

type Prepare = (page: Page) => Promise<unknown>

const open = (page: Page, screen: string) =>
  page.getByRole('navigation').getByRole('link', { name: screen, exact: true }).click()

const pictures: Readonly<Record<string, Prepare>> = {
  now: (page) => open(page, 'Now'),
  calls: async (page) => {
    await open(page, 'Calls')
    await page.getByRole('row').getByRole('link').nth(1).waitFor()
  },
  call: async (page) => {
    await open(page, 'Recent calls')
    await page.getByRole('row').filter({ hasText: 'answered' }).getByRole('link').first().click()
    await page
      .getByText(/INVITE/)
      .first()
      .waitFor()
    await page.evaluate(`document.querySelector('.ladder')?.scrollIntoView()`)
  },
  nodes: (page) => open(page, 'Nodes'),
  customer: async (page) => {
    await open(page, 'Customers')
    await page.getByRole('row').getByRole('link').first().click()
    await page.getByRole('row').nth(2).waitFor()
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
  process.stdout.write(`the demo is at ${address}; ${CALLS_MS / 1_000} s of calls first\n`)
  await sleep(CALLS_MS)
  const browser = await openBrowser()
  const page = await browser.newPage({ viewport: { width: 1_280, height: 720 }, locale: 'en-GB' })
  await page.goto(address)
  await page.getByLabel('User').fill('admin')
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('navigation').waitFor()
  mkdirSync(folder, { recursive: true })
  for (const [name, prepare] of Object.entries(pictures)) {
    await prepare(page)
    // The data of the screen, and its charts.
    await sleep(1_500)
    const path = join(folder, `${name}.png`)
    await page.screenshot({ path })
    const { size } = statSync(path)
    if (size > MAX_BYTES) throw new Error(`${path} has ${size} bytes, more than ${MAX_BYTES}`)
    process.stdout.write(`${path}: ${size} bytes\n`)
  }
  await browser.close()
} finally {
  demo.kill('SIGINT')
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
