//! Networks of every shape: each is built as its file says, and what is wrong with one is said in words.

use weir_lab::run::record;
use weir_lab::scenario::Scenario;

/// A session over 8 Mbit/s to two receivers, one of them behind 1 Mbit/s, and datagrams next to it from the middle on.
const GRAPH: &str = r#"id = "test/graph"
title = "Two bottlenecks"
duration = "40s"

[topology.graph]
bottleneck = ["near", "far"]
links = [
  { between = ["source", "near"], link = "rate=8M,delay=10ms,buffer=50p" },
  { between = ["near", "wide"], link = "rate=100M,delay=5ms,buffer=1000p" },
  { between = ["near", "far"], link = "rate=1M,delay=20ms,buffer=25p", back = "rate=10M,delay=20ms,buffer=25p" },
]

[session.main]
scheme = "avmrc"
at = ["source"]
ladder = { low = "256k", high = "6561k", ratio = 1.5 }
startup = "5s"
receivers = { count = 2, at = ["wide", "far"] }

[flow.datagrams]
from = ["near"]
to = ["far"]
traffic.udp = { rate = "200k" }

[metrics]
wide = { measure = "client_rate", session = "main", client = 0, from = "20s" }
far = { measure = "client_rate", session = "main", client = 1, from = "20s" }
datagrams = { measure = "throughput", flow = "datagrams", from = "20s" }
used = { measure = "link_use" }
"#;

fn read(text: &str) -> Result<Scenario, String> {
    Scenario::parse("shape.toml", text, &[]).map_err(|error| error.to_string())
}

/// The metrics of the first point.
fn measured(text: &str) -> impl Fn(&str) -> f64 + use<> {
    let points = read(text).expect("valid").points().expect("valid");
    let setup = points[0].setup.clone();
    let record = record(&setup, 1).expect("it can be run");
    move |name| setup.metrics[name].value(&record).unwrap_or_else(|| panic!("{name} has no value"))
}

/// `GRAPH` on another topology.
fn on(topology: &str, sender: &str, receivers: &str) -> String {
    let (start, end) = (GRAPH.find("[topology").expect("there"), GRAPH.find("[session").expect("there"));
    let (flow, metrics) = (GRAPH.find("[flow").expect("there"), GRAPH.find("[metrics").expect("there"));
    let session = GRAPH[end..flow].replace("[\"source\"]", sender).replace("[\"wide\", \"far\"]", receivers);
    let metrics = GRAPH[metrics..].lines().filter(|line| !line.starts_with("datagrams")).collect::<Vec<_>>().join("\n");
    format!("{}{topology}\n{session}{metrics}\n", &GRAPH[..start])
}

#[test]
fn receivers_behind_different_links_of_a_graph_get_different_rates() {
    let metric = measured(GRAPH);
    assert!((2_000.0..6_600.0).contains(&metric("wide")), "{}", metric("wide"));
    assert!((250.0..800.0).contains(&metric("far")), "{}", metric("far"));
    assert!((195.0..205.0).contains(&metric("datagrams")), "the watched link is the one to far");
}

#[test]
fn a_change_of_another_link_is_made_there() {
    let cut = "\n[[change]]\nat = \"5s\"\nbetween = [\"near\", \"wide\"]\nlink = \"rate=600k,delay=5ms,buffer=25p\"\n";
    let metric = measured(&format!("{GRAPH}{cut}"));
    assert!((200.0..620.0).contains(&metric("wide")), "{}", metric("wide"));
}

#[test]
fn a_chain_is_as_fast_as_its_narrowest_link() {
    let chain = "[topology.chain]\nbottleneck = [\"n1\", \"n2\"]\n\
        links = [\"rate=9M,delay=5ms,buffer=60p\", \"rate=1M,delay=5ms,buffer=25p\", \"rate=9M,delay=5ms,buffer=60p\"]\n";
    let metric = measured(&on(chain, "[\"n0\"]", "[\"n1\", \"n3\"]"));
    assert!((2_000.0..6_600.0).contains(&metric("wide")), "{}", metric("wide"));
    assert!((500.0..1_000.0).contains(&metric("far")), "{}", metric("far"));
    assert!(metric("used") > 50.0, "{}", metric("used"));
}

#[test]
fn the_leaves_of_a_tree_are_taken_in_turn() {
    let tree = "[topology.tree]\ndegree = 3\ndepth = 2\nlink = \"rate=3M,delay=5ms,buffer=60p\"\n";
    let metric = measured(&on(tree, "[\"root\"]", "[\"leaves\"]"));
    for client in ["wide", "far"] {
        assert!((1_000.0..3_000.0).contains(&metric(client)), "{client}: {}", metric(client));
    }
}

#[test]
fn a_transit_stub_graph_joins_its_stubs() {
    let graph = "[topology.transit_stub]\ntransit_domains = 2\ntransit_nodes = 3\nstubs_per_transit_node = 2\nstub_nodes = 3\n\
        stub_edge = 0.3\ntransit_link = \"rate=9M,delay=10ms,buffer=90p\"\naccess_link = \"rate=9M,delay=3ms,buffer=90p\"\n\
        stub_link = \"rate=9M,delay=1ms,buffer=90p\"\n";
    let metric = measured(&on(graph, "[\"transit\"]", "[\"stubs\"]"));
    for client in ["wide", "far"] {
        assert!((5_000.0..6_600.0).contains(&metric(client)), "{client}: {}", metric(client));
    }
}

#[test]
fn wrong_places_and_shapes_are_refused_in_words() {
    let refused = |from: &str, to: &str| {
        assert!(GRAPH.contains(from), "{from}");
        read(&GRAPH.replace(from, to)).expect_err("must be refused")
    };
    for (from, to, wanted) in [
        ("at = [\"source\"]", "at = [\"sauce\"]", "session.main: at: there is no node \"sauce\""),
        ("at = [\"source\"]", "at = [\"sorce\"]", "did you mean \"source\"?"),
        ("at = [\"source\"]\n", "", "session.main: missing key \"at\", a list of nodes"),
        ("to = [\"far\"]", "to = [\"far\"]\nrtt = \"40ms\"", "flow.datagrams: the delays of the topology's links give"),
        ("[\"near\", \"far\"]\nlinks", "[\"wide\", \"far\"]\nlinks", "topology: no link joins the bottleneck's ends"),
        ("{ between = [\"near\", \"wide\"],", "{ betwen = [\"near\", \"wide\"],", "did you mean \"between\"?"),
    ] {
        let error = refused(from, to);
        assert!(error.contains(wanted), "{error}");
    }
    let dumbbell = on("[topology.dumbbell]\nbottleneck = \"rate=3M\"\n", "[\"left\"]", "[\"right\"]");
    assert!(read(&dumbbell).expect_err("must be refused").contains("a dumbbell has no named nodes: leave at out"));
    let no_rtt = dumbbell.replace("at = [\"left\"]\n", "").replace(", at = [\"right\"]", "");
    assert!(read(&no_rtt).expect_err("must be refused").contains("missing key \"rtt\""));
    let flat = on("[topology.tree]\ndegree = 0\ndepth = 2\nlink = \"rate=3M\"\n", "[\"root\"]", "[\"leaves\"]");
    assert!(read(&flat).expect_err("must be refused").contains("a tree needs a degree and a depth of 1 or more"));
}

/// A switch with a viewer on one port and nobody on another.
const SWITCH: &str = r#"id = "test/switch"
title = "A switch"
duration = "20s"

[topology.graph]
bottleneck = ["switch", "bystander"]
links = [
  { between = ["source", "switch"], link = "rate=100M,delay=1ms" },
  { between = ["switch", "viewer"], link = "rate=100M,delay=1ms" },
  { between = ["switch", "bystander"], link = "rate=1M,delay=1ms" },
]

[router.switch]
floods = "no"

[session.main]
scheme = "avmrc"
at = ["source"]
ladder = { low = "256k", high = "6561k", ratio = 1.5 }
receivers = { at = ["viewer"] }

[metrics]
bystander = { measure = "link_use" }
"#;

#[test]
fn a_switch_that_floods_fills_the_link_of_a_bystander() {
    assert!(measured(SWITCH)("bystander") < 1.0, "one that snoops does not");
    assert!(measured(&SWITCH.replace("floods = \"no\"", "floods = \"yes\""))("bystander") > 90.0);
}

#[test]
fn a_router_that_is_not_there_is_told_with_those_that_are() {
    let error = read(&SWITCH.replace("[router.switch]", "[router.swich]")).expect_err("there is no such node");
    assert!(
        error.contains("router: there is no node \"swich\"; there are bystander, source, switch, viewer"),
        "{error}"
    );
    assert!(error.contains("did you mean \"switch\""), "{error}");
}

#[test]
fn a_link_has_the_rates_of_its_trace_and_another_trace_is_another_set_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("scenario.toml");
    let text = r#"id = "test/trace"
title = "A link that varies"
duration = "30s"
topology.chain.links = ["rate=8M,delay=1ms,buffer=20p"]
flow.cbr = { from = ["n0"], to = ["n1"], traffic.udp = { rate = "4M" } }
change = [{ trace = "link.txt", every = "20s" }]
[metrics]
first = { measure = "throughput", flow = "cbr", from = "0s", to = "10s" }
second = { measure = "throughput", flow = "cbr", from = "10s", to = "20s" }
third = { measure = "throughput", flow = "cbr", from = "20s", to = "30s" }
"#;
    let write = |trace: &str| std::fs::write(folder.path().join("link.txt"), trace).expect("it can be written");
    let point = || {
        let scenario = Scenario::parse(&file.display().to_string(), text, &[]).expect("valid");
        scenario.points().expect("valid").remove(0)
    };
    write("0 1M\n10 300k\n");
    let first = point();
    let record = record(&first.setup, 1).expect("it can be run");
    for (name, kbps) in [("first", 1000.0), ("second", 300.0), ("third", 1000.0)] {
        let value = first.setup.metrics[name].value(&record).expect("it has a value");
        assert!((value - kbps).abs() < 0.03 * kbps, "{name}: {value} kbit/s");
    }
    write("0 2M\n");
    assert_ne!(point().canonical, first.canonical, "the cache would answer for the old trace");
    write("0 fast\n");
    let error = Scenario::parse(&file.display().to_string(), text, &[]).expect_err("it is no rate");
    assert!(error.to_string().contains("link.txt: line 1: \"fast\" is no rate above 0"), "{error}");
}

/// TCPs between the nodes of a small transit-stub graph: eight stub nodes.
const STUBS: &str = r#"id = "test/stubs"
title = "TCPs between stubs"
duration = "5s"

[topology.transit_stub]
transit_domains = 1
transit_nodes = 2
stubs_per_transit_node = 2
stub_nodes = 2
transit_link = "rate=9M,delay=10ms,buffer=90p"
access_link = "rate=9M,delay=3ms,buffer=90p"
stub_link = "rate=9M,delay=1ms,buffer=90p"

[flow.tcp]
from = ["stubs"]
to = ["stubs"]
count = 12
traffic.ftp = {}

[metrics]
used = { measure = "link_use" }
"#;

#[test]
fn flows_between_nodes_of_one_name_have_two_ends_and_cross_the_network() {
    let metric = measured(STUBS);
    assert!(metric("used") > 10.0, "half of the list further on is behind the transit link: {}", metric("used"));
    for (from, to) in [("[\"stubs\"]\nto", "[\"stubs\", \"transit\"]\nto"), ("count = 12", "count = 1")] {
        assert!(STUBS.contains(from));
        measured(&STUBS.replace(from, to))("used");
    }
}

#[test]
fn a_flow_takes_another_sender_where_only_one_node_receives() {
    let tcp = GRAPH.replace("from = [\"near\"]", "from = [\"far\", \"near\"]\ncount = 2");
    let tcp =
        tcp.replace("traffic.udp = { rate = \"200k\" }", "traffic.ftp = {}").replace("[\"source\"]", "[\"wide\"]");
    assert!(measured(&tcp)("datagrams") > 200.0, "both go from near to far");
}

#[test]
fn a_flow_from_a_node_to_itself_is_refused_before_it_runs_for_ever() {
    let wanted = "are one node, and a flow needs two: name another node in from or in to";
    for traffic in ["traffic.ftp = {}", "traffic.stream = { scheme = \"rap\" }", "traffic.udp = { rate = \"200k\" }"] {
        let text = GRAPH.replace("traffic.udp = { rate = \"200k\" }", traffic);
        for from in ["[\"far\"]", "[\"far\", \"far\"]"] {
            let error =
                read(&text.replace("from = [\"near\"]", &format!("from = {from}"))).expect_err("must be refused");
            assert!(error.contains("flow.datagrams: from [") && error.contains(wanted), "{error}");
        }
    }
    let alone = "[topology.tree]\ndegree = 1\ndepth = 2\nlink = \"rate=3M,delay=5ms,buffer=60p\"\n[flow.tcp]\n\
        from = [\"level2\"]\nto = [\"leaves\"]\ntraffic.ftp = {}\n";
    let points = read(&on(alone, "[\"root\"]", "[\"leaves\"]")).expect("names differ").points().expect("valid");
    let error = record(&points[0].setup, 1).expect_err("the nodes do not").to_string();
    assert!(error.contains(wanted), "{error}");
}

#[test]
fn receivers_on_the_sender_s_node_are_served_there() {
    for scheme in ["avmrc", "rmrc", "vmrc", "plm", "stair", "fglm"] {
        let text = GRAPH.replace("scheme = \"avmrc\"", &format!("scheme = \"{scheme}\""));
        let text = text.replace("high = \"6561k\", ratio = 1.5 }", "high = \"4M\", ratio = 2 }");
        let metric = measured(&text.replace("[\"wide\", \"far\"]", "[\"source\", \"far\"]"));
        assert!(metric("wide") > 200.0, "{scheme}: {}", metric("wide"));
    }
}
