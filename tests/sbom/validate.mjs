// Judges a bill of materials by CycloneDX's own JSON schema, in which nothing is allowed that it does not know.
//
//   validate.mjs < BILL.cdx.json              prints what is wrong; exit code 1 if anything is
//   validate.mjs --self-test < BILL.cdx.json  each of a few mistakes, put into it, must be found
import fs from 'node:fs';
import { Spec, Validation } from '@cyclonedx/cyclonedx-library';

async function problems(bill) {
  const version = Object.values(Spec.Version).find((known) => known === bill.specVersion);
  if (!version) return [`specVersion ${bill.specVersion} is unknown`];
  return await new Validation.JsonStrictValidator(version).validate(JSON.stringify(bill)) ?? [];
}

const mistakes = {
  'another format': (bill) => { bill.bomFormat = 'SPDX'; },
  'a field that there is not': (bill) => { bill.components[1].licence = 'MIT'; },
  'a component without a type': (bill) => { delete bill.components[1].type; },
  'a version that is a number': (bill) => { bill.components[1].version = 1; },
  'a digest that is too short': (bill) => { bill.components[0].hashes[0].content = 'abc'; },
  'a serial number that is none': (bill) => { bill.serialNumber = 'urn:uuid:1'; },
  'the same component twice': (bill) => { bill.components.push(bill.components[0]); },
};

async function selfTest(text) {
  let missed = 0;
  for (const [name, make] of Object.entries(mistakes)) {
    const bill = JSON.parse(text);
    make(bill);
    if ((await problems(bill)).length === 0) {
      console.error(`not found: ${name}`);
      missed++;
    }
  }
  return missed;
}

const text = fs.readFileSync(0, 'utf8');
const found = await problems(JSON.parse(text));
for (const problem of found) console.error(JSON.stringify(problem));
const missed = process.argv[2] === '--self-test' ? await selfTest(text) : 0;
process.exit(found.length + missed === 0 ? 0 : 1);
