/** A new system in a browser: brought to its first call through the page alone; and calls that are only simulated. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { openBrowser, openConsole } from '../support/console-browser.ts'
import { admin } from '../support/console-rig.ts'
import { sdp, SipPeer } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { patientNodes } from '../support/waiting.ts'

let browser: Browser
beforeAll(async () => {
  browser = await openBrowser()
})
afterAll(() => browser.close())

const caller = '12025550100'
const called = '18005551212'

/** Axe looks at three pages. */
const timeout = 120_000

test(
  'an empty system comes to its first call through the page; refusals are told in words',
  { timeout },
  async () => {
    const tollgate = await TollgateProcess.start(
      {},
      {
        ...patientNodes,
        ADMIN_PASSWORD: admin.password,
      },
    )
    onTestFinished(() => tollgate.stop())
    const [trunk, node] = [
      await SipPeer.openPatient(tollgate.listener()),
      await SipPeer.openPatient(tollgate.listener()),
    ]
    onTestFinished(() => [trunk, node].forEach((peer) => peer.close()))
    node.always('OPTIONS', 200, { tag: 'probed' })
    const { page, complaints, signIn, inaccessible } = await openConsole(browser, tollgate)
    onTestFinished(() => page.context().close())
    await signIn(admin.username, admin.password)
    const step = (name: string) => page.getByRole('region', { name: new RegExp(`^${name}`) })
    await page.getByText('0 of 5 steps to the first call are done.').waitFor()
    await page.waitForURL(/\/console\/start$/)
    expect(await inaccessible()).toEqual([])

    const first = step('Add a trunk')
    await first.getByText('The same by the API').click()
    await first.getByLabel('Address').fill('127.0.0.1')
    await first.getByLabel('Port').fill(String(trunk.port))
    const shown = await first.getByLabel('Add a trunk: request').textContent()
    expect(shown).toContain(
      `curl -X POST http://127.0.0.1:${tollgate.apiPort}/api/v1/routing/carriers`,
    )
    expect(shown).toContain(`"gateways":[{"host":"127.0.0.1","port":${trunk.port}}]`)
    await page.keyboard.press('Enter')
    await first.getByText('✓ done').waitFor()

    const second = step('Add a node')
    await second.getByLabel('Address').fill('127.0.0.1')
    await second.getByLabel('Port').fill(String(node.port))
    await second.getByRole('button', { name: 'Add the node' }).click()
    await second.getByText('✓ done').waitFor()

    // What is there is the API's to tell.
    await page.reload()
    await page.getByText('2 of 5 steps').waitFor()
    await step('Add a price').getByRole('button', { name: 'Add the price' }).click()
    await step('Add a price').getByText('✓ done').waitFor()
    await step('Add a customer').getByLabel('Its number').fill(caller)
    await step('Add a customer').getByRole('button', { name: 'Add the customer' }).click()
    await step('Add a customer').getByText('✓ done').waitFor()

    const last = step('Place a test call')
    await last.getByLabel('From').fill(caller)
    await last.getByLabel('To', { exact: true }).fill(called)
    await last.getByRole('button', { name: 'Simulate the call' }).click()
    await last.getByText('The call would go on').waitFor()
    await last.getByRole('link', { name: 'first customer' }).waitFor()
    await last.getByText('0.10 USD a minute, prefix any').waitFor()
    expect(await inaccessible()).toEqual([])

    const plain = trunk.leg(`sip:${called}@127.0.0.1:${tollgate.sipPort}`)
    const leg = { ...plain, from: plain.from.replace('sip:peer@', `sip:${caller}@`) }
    trunk.request('INVITE', leg, { body: sdp('caller') })
    node.reply(await node.next('INVITE'), 200, { tag: 'callee', body: sdp('callee') })
    trunk.learn(leg, await trunk.next('200 INVITE'))
    trunk.request('ACK', leg)
    await node.next('ACK')
    trunk.request('BYE', leg)
    node.reply(await node.next('BYE'), 200)
    await page.getByText('All steps are done').waitFor()

    await last.getByRole('link', { name: 'Open in the route simulator' }).click()
    await page.getByRole('heading', { level: 1, name: 'Route simulator' }).waitFor()
    await page.waitForURL(new RegExp(`/console/simulator\\?from=${caller}&to=${called}$`))
    await page.getByText('The call would go on').waitFor()
    await page.getByLabel('From').fill('12025550199')
    await page.getByRole('button', { name: 'Simulate' }).click()
    await page
      .getByText('The call would be refused with 402. The calling number belongs to no customer')
      .waitFor()
    await page.waitForURL(/from=12025550199/)
    expect(await inaccessible()).toEqual([])
    // The question is in the address.
    await page.goto(`/console/simulator?from=${caller}&to=${called}&source=203.0.113.9`)
    await page
      .getByText('refused with 403. The source of the call is no carrier, no node')
      .waitFor()
    expect(complaints).toEqual([])
  },
)
