/** Loss protection, quality, shares and hunting in the console: set in forms, seen on screens. */
import { expect, onTestFinished, test } from 'vitest'
import { formsOf, openBrowser, openConsole, row } from '../support/console-browser.ts'
import { admin } from '../support/console-rig.ts'
import { SipPeer } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { patientInstances } from '../support/waiting.ts'

const anywhere = {
  protocol: 'udp' as const,
  address: '127.0.0.1',
  port: 9,
  advertisedHost: '127.0.0.1',
  advertisedPort: 9,
}

const carrier = (name: string, port: number) => ({
  name,
  direction: 'out',
  rate_plan: `cost of ${name}`,
  gateways: [{ host: '127.0.0.1', port }],
})

const seedFor = (port: number) => ({
  tenants: [{ slug: 'acme', domains: ['acme.example'] }],
  rate_plans: [{ name: 'retail' }, { name: 'cost of north' }, { name: 'cost of south' }],
  rates: [
    { rate_plan: 'retail', prefix: '49', rate_per_minute: '0.10' },
    { rate_plan: 'cost of north', prefix: '49', rate_per_minute: '0.12' },
    { rate_plan: 'cost of south', prefix: '49', rate_per_minute: '0.03' },
  ],
  customers: [{ name: 'acme', tenant: 'acme', rate_plan: 'retail', numbers: [], balance: '50.00' }],
  extensions: [
    {
      tenant: 'acme',
      extension: '103',
      password: 'secret-of-103',
      display_name: '103',
      customer: 'acme',
    },
  ],
  carriers: [carrier('north', port), carrier('south', port)],
  outbound_routes: [
    { name: 'by north', prefix: '49', carrier: 'north', priority: 1 },
    { name: 'by south', prefix: '49', carrier: 'south', priority: 2 },
  ],
})

test(
  'what protects the profit of a route and how a carrier hunts is set, and seen on its screens',
  { timeout: 180_000 },
  async () => {
    const environment = { ...patientInstances, ADMIN_PASSWORD: admin.password }
    const gateway = await SipPeer.openPatient(anywhere)
    onTestFinished(() => gateway.close())
    gateway.always('OPTIONS', 200, { tag: 'probed' })
    const tollgate = await TollgateProcess.start(seedFor(gateway.port), environment)
    onTestFinished(() => tollgate.stop())
    const browser = await openBrowser()
    onTestFinished(() => browser.close())
    const { page, complaints, signIn, inaccessible } = await openConsole(browser, tollgate)
    await signIn(admin.username, admin.password)
    const { dialog, field, choice, confirm } = formsOf(page)
    const count = (name: string) => dialog.getByRole('spinbutton', { name, exact: true })

    await page.getByRole('link', { name: 'Outbound routes', exact: true }).click()
    await page.getByRole('button', { name: 'Change by north' }).click()
    await dialog.getByText('More settings').click()
    expect(await field('Least margin').count()).toBe(0)
    await choice('Calls that leave too little').selectOption('are let through, and told of')
    await field('Least margin').fill('5%')
    await choice('Calls are shared').selectOption('exactly by weight')
    await count('Answered calls, at least (%)').fill('40')
    await confirm('Save')
    await row(page, 'by north').getByText('no calls yet').waitFor()
    expect(
      tollgate.query(
        `SELECT loss_protection, min_margin, distribution FROM outbound_route WHERE id = 1`,
      ),
    ).toEqual([{ loss_protection: 'warn', min_margin: '5%', distribution: 'percent' }])

    await page.getByRole('link', { name: 'Carriers', exact: true }).click()
    await page.getByRole('link', { name: 'north', exact: true }).click()
    await page.getByRole('button', { name: 'Change', exact: true }).click()
    await dialog.getByText('More settings').click()
    await choice('Gateways share calls').selectOption('in turn')
    await field('Answers that end the call').fill('404')
    await count('Attempts of a call, at most').fill('2')
    await dialog.getByRole('button', { name: 'Add an answer' }).click()
    await field('Its answer').fill('503')
    await count('Callers get').fill('480')
    await confirm('Save')
    const hunting = 'ends it: 404; at most 2 attempts; 503 is shown as 480'
    await page.getByText(hunting, { exact: true }).waitFor()
    await page.getByText('in turn', { exact: true }).waitFor()
    await row(page, 'by north').getByText('no calls yet').waitFor()
    expect(await row(page, 'by south').count()).toBe(0)
    expect(await inaccessible()).toEqual([])

    await page.goto('/console/simulator?from=103&to=4930100')
    const first = row(page, 'route by north')
    await first.getByText('too little').waitFor()
    for (const text of ['0.12', '0.1', '-0.02', 'too little'])
      expect(await first.textContent()).toContain(text)
    const titles = await page.getByRole('columnheader').allTextContents()
    expect(titles).toEqual(
      expect.arrayContaining(['Expected call', 'Sold for', 'Bought for', 'Left']),
    )
    await row(page, `When it does not take the call: ${hunting}.`).waitFor()
    await page.getByText('A minute: the carrier takes 0.12 USD, -0.02 USD left.').waitFor()
    // Everything is in sight at 1280 pixels.
    const { scrollWidth, clientWidth } = (await page.evaluate(
      `(({ scrollWidth, clientWidth }) => ({ scrollWidth, clientWidth }))(document.querySelector('.wide'))`,
    )) as { readonly scrollWidth: number; readonly clientWidth: number }
    expect(scrollWidth).toBeLessThanOrEqual(clientWidth)
    expect(await inaccessible()).toEqual([])
    expect(complaints).toEqual([])
  },
)
