/**
 * A new system in a browser: brought to its first call through the page alone; and calls that are
 * only simulated.
 */
import { expect, onTestFinished, test } from 'vitest'
import { openBrowser, openConsole } from '../support/console-browser.ts'
import { admin } from '../support/console-rig.ts'
import { sdp, SipPeer } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { patientInstances } from '../support/waiting.ts'

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
        ...patientInstances,
        ADMIN_PASSWORD: admin.password,
      },
    )
    onTestFinished(() => tollgate.stop())
    const node = await SipPeer.openPatient(tollgate.listener())
    onTestFinished(() => node.close())
    node.always('OPTIONS', 200, { tag: 'probed' })
    const browser = await openBrowser()
    onTestFinished(() => browser.close())
    const { page, complaints, signIn, inaccessible } = await openConsole(browser, tollgate, {
      path: '/',
    })
    onTestFinished(() => page.context().close())
    await signIn(admin.username, admin.password)
    const step = (name: string) => page.getByRole('region', { name: new RegExp(`^${name}`) })
    await page.getByText('0 of 4 steps to the first call are done.').waitFor()
    await page.waitForURL(/\/console\/start$/)
    expect(await inaccessible()).toEqual([])

    const first = step('Add a PBX node')
    await first.getByText('npx tollgate test-pbx').waitFor()
    await first.getByText('The same by the API').click()
    await first.getByLabel('Port').fill(String(node.port))
    const shown = () => first.getByLabel('Add a PBX node: request').textContent()
    const sent = `"nodes":[{"host":"127.0.0.1","internal_port":${node.port}}]`
    await expect.poll(shown).toContain(sent)
    const address = `http://127.0.0.1:${tollgate.apiPort}/api/v1/dispatcher`
    expect(await shown()).toContain(`curl -X POST ${address}`)
    await page.keyboard.press('Enter')
    await first.getByText('✓ done').waitFor()

    // The API tells what is there.
    await page.reload()
    await page.getByText('1 of 4 steps').waitFor()
    await step('Add a price').getByRole('button', { name: 'Add the price' }).click()
    await step('Add a price').getByText('✓ done').waitFor()
    await step('Add a customer').getByLabel('Its number').fill(caller)
    await step('Add a customer').getByRole('button', { name: 'Add the customer' }).click()
    await step('Add a customer').getByText('✓ done').waitFor()

    const last = step('Make the first call')
    await last.getByLabel('From').fill(caller)
    await last.getByLabel('To', { exact: true }).fill(called)
    await last.getByRole('button', { name: 'Call' }).click()
    const invite = await node.next('INVITE')
    expect(invite.uri).toMatch(new RegExp(`^sip:${called}@`))
    expect(invite.get('from')).toContain(`${caller}@`)
    await last.getByText('The call is being placed').waitFor()
    node.reply(invite, 200, { tag: 'callee', body: sdp('callee') })
    await node.next('ACK')
    await last.getByText('It is answered.').waitFor()
    node.reply(await node.next('BYE'), 200)
    await last.getByText(/^answered It lasted 00:0\d and cost 0\.0\d+ USD\./).waitFor()
    await page.getByText('All steps are done').waitFor()
    const [record] = tollgate.calls()
    expect(record).toMatchObject({ caller_id_number: caller, disposition: 'ANSWERED' })
    const entries = tollgate.query<{ kind: string }>('SELECT kind FROM ledger_entry ORDER BY id')
    expect(entries.map(({ kind }) => kind)).toEqual(['topup', 'debit'])

    await last.getByRole('link', { name: 'Simulate it first' }).click()
    await page.getByRole('heading', { level: 1, name: 'Route simulator' }).waitFor()
    await page.waitForURL(
      new RegExp(`/console/simulator\\?from=${caller}&to=${called}&source=127.0.0.1$`),
    )
    await page.getByText('The call would go on').waitFor()
    await page.getByLabel('From').fill('12025550199')
    await page.getByRole('button', { name: 'Simulate' }).click()
    await page
      .getByText('The call would be refused with 402. The calling number belongs to no customer')
      .waitFor()
    await page.waitForURL(/from=12025550199/)
    // The question is in the address.
    await page.goto(`/console/simulator?from=${caller}&to=${called}&source=203.0.113.9`)
    await page
      .getByText('refused with 403. The source of the call is no carrier, no node')
      .waitFor()
    await page.locator('a[href="/guide#denial-unknown_source"]').waitFor()
    expect(complaints).toEqual([])
  },
)
